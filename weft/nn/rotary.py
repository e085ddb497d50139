"""The speeds at which rotary positions turn, and how they are slowed down for texts longer than in training.

Read next: distances.py, which turns queries and keys.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from weft.errors import ConfigError

Kind = Literal["none", "linear", "llama3", "yarn"]


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How rotary positions are slowed down: a recipe's `position_scaling`.

    Args:
        kind: none; linear, all by `factor`; llama3 and yarn, slow ones by `factor`, fast ones not.
        factor: by which positions are divided.
        length: of the texts in the first training.
        low, high: turns within that length from which (llama3) speeds are divided less, and not at all.
        slow, fast: the same turns of yarn.
        whole: whether yarn rounds the places between which it goes over from one to the other.
        attention: factor of rotated queries and keys (yarn).

    Source: Chen et al. 2023 (linear); Peng et al. 2024 (yarn), section 3; Grattafiori et al. 2024 (llama3).
    """

    kind: Kind = "none"
    factor: float = 1.0
    length: int = 8192
    low: float = 1.0
    high: float = 4.0
    slow: float = 1.0
    fast: float = 32.0
    whole: bool = True
    attention: float = 1.0

    def __post_init__(self) -> None:
        for name in ("factor", "length", "low", "high", "slow", "fast", "attention"):
            if not 0 < getattr(self, name) < 1e12:
                raise ConfigError(
                    f"position_scaling.{name}: expected a positive number, got {getattr(self, name)}"
                )
        if self.low >= self.high or self.slow >= self.fast:
            raise ConfigError(
                "position_scaling: expected low below high and slow below fast, got "
                f"{self.low:g}, {self.high:g}, {self.slow:g}, {self.fast:g}"
            )


UNSCALED = Scaling()


def speeds(size: int, base: float, how: Scaling, like: Tensor) -> Tensor:
    """[K/2] the angle per position of each pair of K features, in float64.

    Example:
        >>> found = speeds(4, 100.0, Scaling(kind="linear", factor=2.0), torch.ones(1))
        >>> [round(speed, 9) for speed in found.tolist()]
        [0.5, 0.05]
    """
    pair = torch.arange(size // 2, device=like.device, dtype=torch.float64)
    speed = torch.exp(pair * (-2 * math.log(base) / size))
    if how.kind == "none":
        return speed
    if how.kind == "linear":
        return speed / how.factor
    if how.kind == "llama3":
        turns = how.length * speed / (2 * math.pi)
        kept = ((turns - how.low) / (how.high - how.low)).clamp(0, 1)
    else:
        kept = 1 - _ramp(size, base, how, pair)
    return speed * kept + speed / how.factor * (1 - kept)


def _ramp(size: int, base: float, how: Scaling, pair: Tensor) -> Tensor:
    """0 for pairs that turn more often than `fast` within the length, 1 for less often than `slow`."""
    begin, end = (
        size * math.log(how.length / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (how.fast, how.slow)
    )
    if how.whole:
        begin, end = math.floor(begin), math.ceil(end)
    begin, end = max(begin, 0), min(end, size - 1)
    return ((pair - begin) / (end - begin + 0.001 * (begin == end))).clamp(0, 1)
