"""Transforms of the values of series before a model reads them. Read next: windows.py."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from weft.errors import DataError

TransformName = Literal["log", "log1p", "box-cox"]


class PowerTransform(NamedTuple):
    """The transform of Box and Cox: ((y + shift)^power - 1) / power, or log(y + shift) for the power 0.

    Example:
        >>> log = PowerTransform(0.0)
        >>> log.back(log.of(np.array([1.0, 20.0]), "y")).round(9).tolist()
        [1.0, 20.0]
    """

    power: float = 1.0  # 1 without a shift leaves values as they are
    shift: float = 0.0

    def of(self, values: np.ndarray, called: str) -> np.ndarray:
        """Values transformed."""
        if self == PowerTransform():
            return values
        if (values <= -self.shift).any():
            least = "from 0 on" if self.shift else "above 0"
            what = f"transform: expected values {least} in {called}, got {np.nanmin(values):g}"
            raise DataError(f"{what}; leave data.transform out{'' if self.shift else ', or write log1p'}")
        return np.log(values + self.shift) if not self.power else (values**self.power - 1) / self.power

    def lowest(self) -> float:
        """What 0 becomes."""
        if self == PowerTransform() or self.shift:
            return 0.0
        return -1 / self.power if self.power else -math.inf

    def back(self, values: np.ndarray) -> np.ndarray:
        """Transformed values in their units."""
        if self == PowerTransform():
            return values
        if not self.power:
            return np.exp(values) - self.shift
        return np.maximum(values * self.power + 1, 0) ** (1 / self.power)


def power_of(name: TransformName | None, parts: Sequence[np.ndarray]) -> PowerTransform:
    """The transform of a name; box-cox has the power from 0 to 1 that is most likely on parts [T, F]."""
    if name != "box-cox":
        return PowerTransform() if name is None else PowerTransform(0.0, float(name == "log1p"))
    columns = [column[np.isfinite(column)] for part in parts for column in part.T]

    def likelihood(power: float) -> float:
        spread = [math.log(float(PowerTransform(power).of(y, "").var()) or 1.0) for y in columns]
        parts = zip(columns, spread, strict=True)
        return sum((power - 1) * float(np.log(y).sum()) - len(y) / 2 * one for y, one in parts)

    PowerTransform(0.0).of(np.concatenate(columns), "the series")
    return PowerTransform(max((n / 20 for n in range(20)), key=likelihood))
