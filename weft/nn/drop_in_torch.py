"""How torch's own tools treat the drop-ins: TorchScript, quantisation and torch.compile.

torch knows its own recurrent modules by their class. TorchScript gets torch's module with the same
parameters, `as_torch` gives it to whoever asks, and torch.compile leaves a drop-in as eager as torch's.
Read next: drop_in_layers.py.
"""

import copy
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from weft.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
TORCHS = (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell)


class Known(nn.Module):
    """A drop-in, for torch's tools. Children are children of one of TORCHS, too."""

    __jit_unused_properties__ = ("qconfig",)

    def __prepare_scriptable__(self) -> nn.Module:
        """torch's own module with the same parameters, which torch.jit.script takes instead.

        Raises:
            ConfigError: a setting that torch.nn does not have.
        """
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
        """How torch.ao.quantization quantises this module: not at all, which setting it says."""

    @qconfig.setter
    def qconfig(self, _: Any) -> None:
        """Warn: torch.ao.quantization was here and does not know this class."""
        name = type(self).__name__
        warnings.warn(
            f"weft.nn.{name} stays in floating point: torch quantises its own class alone; "
            "give weft.nn.as_torch(model) instead of the model",
            stacklevel=2,
        )

    @qconfig.deleter
    def qconfig(self) -> None:
        """Nothing was kept."""


def as_torch(model: nn.Module) -> nn.Module:
    """A copy of a model in which torch.nn's own recurrent modules stand for these, with the same parameters.

    Args:
        model: any, also a drop-in itself.

    Raises:
        ConfigError: a drop-in with a setting that torch.nn does not have (residual, join).

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
    if isinstance(module, Known):
        return module.__prepare_scriptable__()
    for name, child in module.named_children():
        setattr(module, name, _swapped(child))
    return module


def left_eager(function: F) -> F:
    """Let torch.compile run a function, and all that it calls, as it is.

    torch.compiler.disable does the same, but takes half a second to import with everything it needs.
    """
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP  # type: ignore[attr-defined]
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))  # type: ignore[attr-defined]
    return function
