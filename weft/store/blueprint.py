"""Build the model that a recipe describes, but not one that is far larger than its stored weights.

A downloaded run may pair a recipe for a model of terabytes with weights of a few bytes.
Read next: weights.py.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weft.errors import CheckpointError, ConfigError, WeftError

SPARE = 2**26
"""Numbers that building may allocate besides the weights: position tables, copies."""

TIMES = 4
"""Numbers that building may allocate per number in the weights."""

_MAKERS = {
    getattr(torch, name) for name in ("empty", "zeros", "ones", "rand", "randn", "full", "eye", "arange")
} | {getattr(Tensor, name) for name in ("new_empty", "new_zeros", "new_ones", "new_full")}


def build(make: Callable[[], nn.Module]) -> nn.Module:
    """Build a model."""
    try:
        return make()
    except WeftError:
        raise
    except (RuntimeError, ArithmeticError, LookupError, ValueError) as error:
        if isinstance(error, NotImplementedError) or "can't allocate memory" in str(error):
            raise
        why = str(error).partition("\n")[0][:200]
        raise ConfigError(f"model: cannot be built with these sizes ({why}); change them") from error


def build_for(make: Callable[[], nn.Module], weights: Mapping[str, Tensor], place: str) -> nn.Module:
    """Build a model for stored weights."""
    stored = sum(tensor.numel() for tensor in weights.values())
    try:
        with _Counted(TIMES * stored + SPARE):
            return build(make)
    except _TooMuch:
        raise CheckpointError(
            f"{place}: contains a different model from the recipe ({stored:,} numbers, the recipe describes "
            "a far larger one); use the recipe it was trained with"
        ) from None


class _TooMuch(Exception):
    """The model allocates more numbers than allowed."""


class _Counted(TorchFunctionMode):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if func in _MAKERS:
            self._left -= math.prod(_sizes(given.get("size", args)))
            if self._left < 0:
                raise _TooMuch
        return func(*args, **given)


def _sizes(args: Any) -> list[int]:
    """The sizes in the arguments of a tensor constructor: the integers, or the first list of them."""
    whole = [one for one in args if not isinstance(one, Tensor)]
    sizes = whole[0] if whole and isinstance(whole[0], tuple | list) else whole
    return [one for one in sizes if isinstance(one, int)]
