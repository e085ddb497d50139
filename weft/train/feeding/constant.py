"""A constant probability; 1 is ordinary teacher forcing. Read next: step.py."""

from dataclasses import dataclass

from weft.train.feeding.feeding import Feeding, check_probability


@dataclass(frozen=True, kw_only=True)
class Constant(Feeding):
    """p.

    Args:
        p: probability of feeding the true token.
        per_sequence: draw once per sequence.
        parallel: see Feeding.
    """

    p: float = 1.0
    per_sequence: bool = False
    parallel: bool = False

    def __post_init__(self) -> None:
        check_probability("constant", p=self.p)

    def probability(self, update: int, epoch: int) -> float:
        """p."""
        return self.p
