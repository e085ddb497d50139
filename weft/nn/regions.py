"""Parts of a model that torch.compile writes anew, each by itself (`training.compile`).

A module names such methods in `regions`: they take and give tensors, change nothing, and have many small
operations between their products, which then become a few. Compiled code serves training alone: validation,
search, and whoever watches or changes what is inside run the method as it is written. Modules of one class
share what was compiled, parameters keep their names, and shapes are left open.
Read next: transformer.py, which has regions; train/compiling.py, which asks for them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn

from weft.errors import ConfigError
from weft.probe import changing, watching

_plain: ContextVar[bool] = ContextVar("weft_plain", default=False)


class Region:
    """A method that is compiled when it is first called in training.

    Args:
        module: whose method it is.
        name: of the method.
    """

    def __init__(self, module: nn.Module, name: str) -> None:
        self._module = module
        self._name = name
        self._written: Callable[..., Any] = getattr(type(module), name)
        self._compiled = torch.compile(self._written, dynamic=True, options={"fx_graph_cache": False})

    def __call__(self, *arguments: Any) -> Any:
        """What the method gives.

        Raises:
            ConfigError: torch cannot compile it.
        """
        if not self._module.training or not torch.is_grad_enabled() or watching() or changing():
            return self._written(self._module, *arguments)
        if _plain.get():
            return self._written(self._module, *arguments)
        from torch._dynamo.exc import TorchDynamoException

        try:
            return self._compiled(self._module, *arguments)
        except TorchDynamoException as error:
            raise ConfigError(
                f"training.compile: torch could not compile {type(self._module).__name__}.{self._name} "
                f"({str(error).splitlines()[0][:120]}); set training.compile: false"
            ) from error


def compile_regions(model: nn.Module) -> int:
    """Let every region of a model be compiled, in place; how many modules have some."""
    having = [module for module in model.modules() if getattr(type(module), "regions", ())]
    for module in having:
        for name in type(module).regions:  # type: ignore[attr-defined]
            setattr(module, name, Region(module, name))
    return len(having)


@contextmanager
def plainly() -> Iterator[None]:
    """Run regions as they are written inside the block: what hooks look into has to be there."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)
