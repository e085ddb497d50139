"""A stand-in for a GPU: its tensors have shapes and dtypes but no values, so whoever asks for one is found.

`gpu()` turns torch's meta device into "cuda": factories and `.to` put tensors there, and `tensor.device` says
so. An operation raises `Asked` if a GPU would have to answer with a value (`.item()`, `nonzero`, indices by a
mask, `torch.equal`), if it mixes devices, or if it would wait for a copy while a graph is recorded.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from weft import masks
from weft.config import read_recipe
from weft.models import Generator, Labeller
from weft.nn import border, devices
from weft.nn.embed.contextual import BothWays
from weft.nn.embed.neighbours import Glove, Neighbours
from weft.run.training import check_recipe
from weft.tasks.forecast.model import ForecastNetwork
from weft.tasks.masked.model import MaskedLanguageModel

GPU = torch.device("cuda", 0)
META = torch.device("meta")
ASKING = {
    "_local_scalar_dense", "item", "nonzero", "nonzero_static", "equal", "is_nonzero", "masked_select",
    "_unique2", "unique_dim", "unique_consecutive", "repeat_interleave", "bincount", "_linalg_check_errors",
    "linalg_matrix_exp",
}  # fmt: skip
"""Operations whose result has a size, or is a number, that only the GPU knows."""
COPYING = {"_to_copy", "copy_", "lift_fresh_copy"}
STEPPING = {"_fused_adam_", "_fused_adamw_"}  # no kernel without values


class Asked(AssertionError):
    """Something needs a value from the GPU, or another device."""


class _Operations(TorchDispatchMode):
    """Checks every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.recording, self.shown = False, True

    def device(self, tensor: Tensor) -> torch.device:
        """What `tensor.device` says."""
        found = real_device(tensor)
        return GPU if found == META and self.shown else found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        there = [tensor for tensor in given if real_device(tensor) == META]
        name = func._schema.name.split("::")[1]
        goes = real_device_of(kwargs.get("device")) == META
        if (there or goes) and kwargs.get("generator") is not None:
            raise Asked(f"{func}: a CPU's generator draws for a GPU")
        if there or (goes and name in COPYING):
            self._check(name, func, args, kwargs, given, there)
        if there and name in STEPPING:
            return None
        shown, self.shown = self.shown, False  # torch's own code for the meta device asks for it
        try:
            return func(*args, **kwargs)
        finally:
            self.shown = shown

    def _check(
        self, name: str, func: Any, args: Any, kwargs: Any, given: list[Tensor], there: list[Tensor]
    ) -> None:
        if there and name in ASKING:
            raise Asked(f"{func}: a GPU must answer with a value")
        if there and name.startswith(("index", "_index", "_unsafe_index")):
            indices = [one for one in given[1:] if one.dtype in (torch.bool, torch.uint8)]
            if indices and name not in ("index_fill", "index_select", "index_add", "index_copy"):
                raise Asked(f"{func}: indices by a mask must be counted")
        here = [tensor for tensor in given if real_device(tensor) != META]
        if name in COPYING:
            if there and (real_device_of(kwargs.get("device")) or META) != META:
                raise Asked(f"{func}: copied from the GPU")
            if name == "copy_" and real_device(args[0]) != META:
                raise Asked(f"{func}: copied from the GPU")
            if here and self.recording:
                raise Asked(f"{func}: copied to the GPU while a graph is recorded")
        elif [one for one in here if one.dim() or torch.Tag.pointwise not in func.tags]:
            raise Asked(f"{func}: tensors on the CPU and on the GPU")


class _Functions(TorchFunctionMode):
    """Turns the device "cuda" into "meta" in what torch is given."""

    def __init__(self, operations: _Operations) -> None:
        super().__init__()
        self._operations = operations

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "pin_memory":
            return args[0]
        if name in ("cpu", "numpy", "tolist") and real_device(args[0]) == META:
            raise Asked(f"Tensor.{name}: copied from the GPU")
        if "device" in kwargs:
            kwargs["device"] = real_device_of(kwargs["device"])
        if name == "to":
            args = tuple(real_device_of(a) if isinstance(a, (torch.device, str)) else a for a in args)
        made = name in ("tensor", "as_tensor", "new_tensor")
        if made and self._operations.recording and kwargs.get("device") == META:
            raise Asked(f"{name}: copied to the GPU while a graph is recorded")
        if name == "new_tensor" and self._operations.recording and real_device(args[0]) == META:
            raise Asked("new_tensor: copied to the GPU while a graph is recorded")
        return func(*args, **kwargs)


_read_device = torch._C.TensorBase.device.__get__  # type: ignore[attr-defined]


def rehearsed(recipe: str, *changes: str) -> tuple[Any, Any]:
    """The model of a shipped recipe and the batch that `rehearse` gives it."""
    given: list[tuple[Any, Any]] = []

    def noting(loss: Any) -> Any:
        def run(self: Any, batch: Any, *rest: Any, **named: Any) -> Any:
            given.append((self, batch))
            return loss(self, batch, *rest, **named)

        return run

    task = check_recipe(read_recipe(f"recipes/{recipe}.yaml", list(changes))).task
    with ExitStack() as stack:
        for kind in (Generator, Labeller, MaskedLanguageModel, ForecastNetwork, BothWays, Neighbours, Glove):
            for name in {"loss", "carry_on"} & set(vars(kind)):
                stack.enter_context(mock.patch.object(kind, name, noting(vars(kind)[name])))
        task.rehearse()
    return given[0]


def real_device(tensor: Tensor) -> torch.device:
    return _read_device(tensor)  # type: ignore[no-any-return]


def real_device_of(device: Any) -> Any:
    if device is None:
        return None
    device = torch.device(device)
    return META if device.type == "cuda" else device


class Graph:
    """In place of torch.cuda.CUDAGraph; `replays` counts."""

    replays = 0

    def pool(self) -> int:
        return 1

    def replay(self) -> None:
        Graph.replays += 1


@contextmanager
def gpu() -> Iterator[_Operations]:
    """A block in which "cuda" is the stand-in."""
    operations = _Operations()

    @contextmanager
    def recorded(graph: Graph, **_: Any) -> Iterator[None]:
        operations.recording = True
        try:
            yield
        finally:
            operations.recording = False

    stream: Any = mock.MagicMock()
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(mock.patch.object(torch.Tensor, "device", property(operations.device)))
        enter(mock.patch.object(torch.Tensor, "is_cuda", property(lambda one: operations.device(one) == GPU)))
        for asker in (masks, border):
            enter(mock.patch.object(asker, "inspectable", lambda tensor: not masks.traced()))
        enter(mock.patch.object(devices, "autocast", lambda bfloat16, device: nullcontext()))
        for name, value in {
            "Stream": stream, "current_stream": stream, "stream": lambda one: nullcontext(),
            "CUDAGraph": Graph, "graph": recorded, "manual_seed": lambda number: None,
        }.items():  # fmt: skip
            enter(mock.patch.object(torch.cuda, name, value))
        enter(_Functions(operations))
        enter(operations)
        yield operations
