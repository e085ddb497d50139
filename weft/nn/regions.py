"""Methods of a model that torch.compile compiles separately (`training.compile`).

A module lists such methods in `regions`. They map tensors to tensors without side effects and have many small
operations between matrix products, which are fused. Compiled code is used only in training; validation,
search, probes and edits run the original method. Modules of one class share compiled code, parameters keep
their names, and shapes are dynamic.
Read next: transformer.py, which has regions; train/ready.py, which uses them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn

from weft.errors import ConfigError
from weft.probe import edit_active, watching, within

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
