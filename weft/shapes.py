"""The letters of dimensions used everywhere, and checks of shapes and choices at public entry points.

B rows (examples)      S source positions     T target positions or time steps
D width                H heads                K width of a head
V vocabulary           C classes              L layers
W beam width           F features of a series
In a cell's docstring H is the hidden size, as in the papers. Rows come first, positions second,
features last. Read next: masks.py.
"""

from numbers import Integral
from typing import Any, get_args

from torch import Tensor

from weft.errors import ConfigError, ShapeError


def check_shape(name: str, tensor: Tensor, *sizes: int | None) -> None:
    """Check a tensor's shape; None stands for any size."""
    fits = tensor.dim() == len(sizes) and all(
        need is None or need == got for need, got in zip(sizes, tensor.shape, strict=True)
    )
    if not fits:
        need = ", ".join("any" if size is None else str(size) for size in sizes)
        raise ShapeError(f"{name}: expected [{need}], got shape {list(tensor.shape)}")


def check_choice(name: str, value: str, choices: Any) -> None:
    """Check that a value is one of a fixed set of choices, a Literal."""
    if value not in get_args(choices):
        raise ConfigError(f"{name}: expected one of {', '.join(get_args(choices))}, got {value!r}")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Check that a value is a whole number of at least so many."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name}: expected a whole number of at least {least}, got {value!r}")
