"""Choose the device and the precision of a training, and the methods of a model that torch.compile compiles.

A module lists such methods in `regions` (`training.compile`). They map tensors to tensors without side
effects and have many small operations between matrix products, which are fused. Compiled code is used only
in training; validation, search, probes and edits run the original method. Modules of one class share
compiled code, parameters keep their names, and shapes are dynamic.
Read next: transformer.py, which has regions; ../train/ready.py.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal

import torch
from torch import nn

from weft.errors import ConfigError
from weft.nn.kernels.linear import autocast_on_cpu
from weft.probe import edit_active, watching, within


def choose(name: str) -> torch.device:
    """The device of that name; auto is a GPU if there is one."""
    local = os.environ.get("LOCAL_RANK")  # each of several processes gets a GPU of its own
    if name == "auto" and not torch.cuda.is_available():
        return torch.device("cpu")
    if name in ("auto", "cuda") and local is not None and torch.cuda.is_available():
        return torch.device("cuda", int(local) % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cuda")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"training.device: expected auto, cpu or cuda, got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("training.device: torch sees no GPU for cuda; set it to auto or cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"training.device: expected a GPU below cuda:{torch.cuda.device_count()}, got {name}"
        )
    return device


def with_settings(device: torch.device) -> torch.device:
    """The device, after settings of torch for it.

    cuDNN's attention builds a plan for every new shape of a batch, which took most of an update on an H200;
    torch's other kernels take its place. And cuDNN's recurrent layers and convolutions would multiply float32
    numbers with 10 bits of their 23 (TF32): the answers to a line alone and among others then differed in the
    fourth digit.
    """
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
        torch.backends.cudnn.set_flags(_allow_tf32=False)  # also where torch.testing has frozen the flags
    return device


def select(device: torch.device) -> None:
    """Make a GPU the one that torch uses where none is named, such as for its generator and its streams."""
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


def fast_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware.

    On a CPU this needs AMX or AVX512_BF16; otherwise bfloat16 is emulated, slower than float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    return any(_supports(name) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))


def uses_bfloat16(precision: Literal["auto", "float32", "bfloat16"], device: torch.device) -> bool:
    """Whether this precision setting means bfloat16 on this device."""
    return precision == "bfloat16" or (precision == "auto" and fast_bfloat16(device))


def autocast(bfloat16: bool, device: torch.device) -> AbstractContextManager[object]:
    """The context in which losses are computed: autocast to bfloat16, or no change."""
    if not bfloat16:
        return nullcontext()
    return autocast_on_cpu() if device.type == "cpu" else torch.autocast(device.type, torch.bfloat16)


def _supports(name: str) -> bool:
    # These functions are private to torch and may disappear.
    query = getattr(torch.cpu, name, None)
    return bool(query()) if callable(query) else False


_plain: ContextVar[bool] = ContextVar("weft_plain", default=False)


class Region:
    """A method of a module that is compiled when it is first called in training."""

    def __init__(self, module: nn.Module, name: str) -> None:
        self._module = module
        self._name = name
        self._method: Callable[..., Any] = getattr(type(module), name)
        self._compiled = torch.compile(self._method, dynamic=True, options={"fx_graph_cache": False})

    def __call__(self, *arguments: Any) -> Any:
        """Call the method."""
        if not self._module.training or not torch.is_grad_enabled() or watching() or edit_active():
            return self._method(self._module, *arguments)
        if _plain.get():
            return self._method(self._module, *arguments)
        from torch._dynamo.exc import TorchDynamoException

        try:
            return self._compiled(self._module, *arguments)
        except TorchDynamoException as error:
            raise ConfigError(
                f"training.compile: torch could not compile {type(self._module).__name__}.{self._name} "
                f"({str(error).splitlines()[0][:120]}); set training.compile: false"
            ) from error


def compile_regions(model: nn.Module) -> int:
    """Compile every region of a model, in place; returns the number of modules with regions."""
    modules = [module for module in model.modules() if getattr(type(module), "regions", ())]
    for module in modules:
        for name in type(module).regions:  # type: ignore[attr-defined]
            setattr(module, name, Region(module, name))
    return len(modules)


def plainly() -> AbstractContextManager[None]:
    """Run the original methods in the block, for hooks into their modules."""
    return within(_plain, True)
