"""The probability falls linearly. Read next: exponential.py."""

from dataclasses import dataclass

from weft.train.feeding.feeding import Feeding, check_positive, check_probability


@dataclass(frozen=True, kw_only=True)
class Linear(Feeding):
    """max(floor, 1 - (1 - floor) i / updates), with i the number of updates so far.

    Args:
        updates: updates until the floor.
        floor: the lowest probability.
        per_sequence: draw once per sequence.
        parallel: see Feeding.

    Source: Bengio et al. 2015, section 2.4.
    """

    updates: int
    floor: float = 0.0
    per_sequence: bool = False
    parallel: bool = False

    def __post_init__(self) -> None:
        check_positive("linear", updates=self.updates)
        check_probability("linear", floor=self.floor)

    def probability(self, update: int, epoch: int) -> float:
        """From 1 to `floor`."""
        return max(self.floor, 1 - (1 - self.floor) * update / self.updates)
