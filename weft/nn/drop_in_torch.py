"""Compatibility of the drop-in modules with TorchScript, quantisation and torch.compile.

torch recognises its own recurrent modules by class. TorchScript gets torch's module with the same
parameters, `as_torch` returns such a module, and torch.compile runs a drop-in eagerly, like torch's modules.
Read next: drop_in.py.
"""

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from weft.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
TORCHS = (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell)


class DropInModule(nn.Module):
    """A drop-in module for torch's tools; subclasses also subclass one of TORCHS."""

    __jit_unused_properties__ = ("qconfig",)

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        try:
            super().__init__(*arguments, **settings)
        except ValueError as refusal:
            usual = inspect.signature(type(self).__init__).parameters
            changed = {n: v for n, v in settings.items() if n not in usual or v != usual[n].default}
            given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in changed.items())]
            raise ConfigError(f"{type(self).__name__}({', '.join(given)}): {refusal}") from None

    def __prepare_scriptable__(self) -> nn.Module:
        """torch's module with the same parameters, which torch.jit.script uses instead."""
        kind = next(base for base in type(self).__mro__ if base in TORCHS)
        own = {name: getattr(self, name, usual) for name, usual in (("residual", False), ("join", None))}
        if own["residual"] or own["join"] in ("mean", "sum"):
            raise ConfigError(
                f"{type(self).__name__}: expected residual=False and join='concatenate', which are all that "
                f"torch.nn.{kind.__name__} knows, got residual={own['residual']}, join={own['join']!r}; "
                "TorchScript and quantize_dynamic cannot take it"
            )
        theirs: nn.Module = kind.__new__(kind)
        theirs.__dict__.update(
            {k: v for k, v in self.__dict__.items() if k not in ("residual", "join", "nan")}
        )
        return theirs

    @property
    def qconfig(self) -> None:
        """Set by torch.ao.quantization, which does not support this class; setting it warns."""

    @qconfig.setter
    def qconfig(self, _: Any) -> None:
        """Warn that torch.ao.quantization does not support this class."""
        name = type(self).__name__
        warnings.warn(
            f"weft.nn.{name} stays in floating point: torch quantises its own class alone; "
            "give weft.nn.as_torch(model) instead of the model",
            stacklevel=2,
        )

    @qconfig.deleter
    def qconfig(self) -> None:
        """Nothing to delete."""


def as_torch(model: nn.Module) -> nn.Module:
    """A copy of a model with torch.nn's recurrent modules instead of ours, with the same parameters.

    Args:
        model: any module, including a drop-in.

    Raises:
        ConfigError: a drop-in has a setting not available in torch.nn (residual, join).

    Example:
        >>> from weft.nn import LSTM
        >>> as_torch(nn.Sequential(LSTM(3, 5)))
        Sequential(
          (0): LSTM(3, 5)
        )
        >>> type(as_torch(LSTM(3, 5))).__module__
        'torch.nn.modules.rnn'
    """
    return _swapped(copy.deepcopy(model))


def _swapped(module: nn.Module) -> nn.Module:
    if isinstance(module, DropInModule):
        return module.__prepare_scriptable__()
    for name, child in module.named_children():
        setattr(module, name, _swapped(child))
    return module


def left_eager(function: F) -> F:
    """Make torch.compile run a function, and everything that it calls, eagerly.

    torch.compiler.disable does the same, but its import takes half a second.
    """
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP  # type: ignore[attr-defined]
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))  # type: ignore[attr-defined]
    return function
