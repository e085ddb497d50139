"""Types of settings with the range of their values, declared where a constructor names its parameters.

    def __init__(self, *, num_layers: Count = 6, dropout: DropoutRate = 0.1) -> None:

A recipe's value outside the range is an error with file and line (config/kinds.py). `check_fields` checks the
fields of a dataclass that is made in Python. Read next: config/building.py.
"""

from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from weft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The range of a number; it must be above `gt` and below `lt`."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def hold(self, value: float) -> bool:
        """Whether a number is in the range; NaN never is."""
        return (
            (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
            and (self.lt is None or value < self.lt)
        )

    def words(self) -> str:
        """The range in words."""
        low = f"above {self.gt:,}" if self.gt is not None else f"{self.ge:,}" if self.ge is not None else ""
        high = f"below {self.lt:,}" if self.lt is not None else f"{self.le:,}" if self.le is not None else ""
        if low and high:
            upto = high if self.lt is not None else f"up to {high}"
            return f"{low} and {upto}" if self.gt is not None else f"from {low} to {high}"
        if low:
            return low if self.gt is not None else f"of at least {low}"
        return high if self.lt is not None else f"of at most {high}"


Probability = Annotated[float, Bounds(ge=0, le=1)]
"""A probability or another share, 0 to 1."""

Share = Annotated[float, Bounds(ge=0, lt=1)]
"""A share below 1."""

DropoutRate = Share

NonNegative = Annotated[float, Bounds(ge=0)]
Positive = Annotated[float, Bounds(gt=0)]

Whole = Annotated[int, Bounds(ge=0)]
AtLeastOne = Annotated[int, Bounds(ge=1)]

Count = Annotated[int, Bounds(ge=0, le=10_000)]
"""A number of layers, heads or the like; limited, so that a mistake does not use up all memory."""

Size = Annotated[int, Bounds(ge=0, le=10_000_000)]
"""Features of a layer or rows of a table; products of larger sizes overflow."""

Sizes = tuple[Size, ...]

Features = Annotated[int, Bounds(ge=1, le=10_000_000)]
"""Features of a vector that cannot be left out."""


def check_fields(settings: Any, prefix: str = "") -> None:
    """Check the fields of a dataclass against the ranges and choices in their annotations."""
    for name, kind in get_type_hints(type(settings), include_extras=True).items():
        check_value(f"{prefix}{name}", getattr(settings, name), kind)


class Section:
    """A part of a recipe: a dataclass whose fields are checked when it is made."""

    def __post_init__(self) -> None:
        check_fields(self)


def check_value(name: str, value: Any, kind: Any) -> None:
    """Check a value against a type with ranges and choices."""
    origin: Any = get_origin(kind)
    inner: tuple[Any, ...] = get_args(kind)
    if origin is Annotated:
        for bounds in inner[1:] if isinstance(value, int | float) else ():
            if isinstance(bounds, Bounds) and not bounds.hold(value):
                noun = "a whole number" if inner[0] is int else "a number"
                raise ConfigError(f"{name}: expected {noun} {bounds.words()}, got {value}")
    elif origin is Literal:
        if value not in inner:
            raise ConfigError(f"{name}: expected one of {', '.join(map(str, inner))}, got {value!r}")
    elif isinstance(value, tuple | list):
        for one in value if inner else ():
            check_value(name, one, inner[0])
    elif origin in (Union, UnionType) and value is not None:
        choices = [one for one in inner if get_origin(one) is Literal]
        if not any(value in get_args(one) for one in choices):
            for one in [one for one in inner if one not in (*choices, NoneType)] or choices:
                check_value(name, value, one)
