"""The probability decays by the same factor at each update. Read next: inverse_sigmoid.py."""

from dataclasses import dataclass

from weft.train.feeding.feeding import Feeding, check_probability


@dataclass(frozen=True, kw_only=True)
class Exponential(Feeding):
    """max(floor, k^i), with i the number of updates so far.

    Args:
        k: factor per update, just below 1.
        floor: the lowest probability.
        per_sequence: draw once per sequence.
        parallel: see Feeding.

    Source: Bengio et al. 2015, section 2.4.
    """

    k: float = 0.9999
    floor: float = 0.0
    per_sequence: bool = False
    parallel: bool = False

    def __post_init__(self) -> None:
        check_probability("exponential", k=self.k, floor=self.floor)

    def probability(self, update: int, epoch: int) -> float:
        """From 1 to `floor`."""
        return max(self.floor, self.k**update)
