"""The probability stays near 1, then falls, then levels out. Read next: ../settings.py."""

import math
from dataclasses import dataclass

from weft.errors import ConfigError
from weft.train.feeding.feeding import Feeding, check_probability


@dataclass(frozen=True, kw_only=True)
class InverseSigmoid(Feeding):
    """max(floor, k / (k + exp(i / k))), with i the number of updates so far.

    Args:
        k: at least 1; the probability is 1/2 after k ln k updates.
        floor: the lowest probability.
        per_sequence: draw once per sequence.
        parallel: see Feeding.

    Source: Bengio et al. 2015, section 2.4.
    """

    k: float = 1000.0
    floor: float = 0.0
    per_sequence: bool = False
    parallel: bool = False

    def __post_init__(self) -> None:
        check_probability("inverse_sigmoid", floor=self.floor)
        if not self.k >= 1:
            raise ConfigError(f"inverse_sigmoid: expected k of at least 1, got {self.k}")

    def probability(self, update: int, epoch: int) -> float:
        """From k / (k + 1) to `floor`."""
        exponent = update / self.k - math.log(self.k)
        return max(self.floor, 1 / (1 + math.exp(min(exponent, 700.0))))  # 700: exp overflows above 709
