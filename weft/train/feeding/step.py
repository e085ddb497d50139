"""One probability before an epoch, another one afterwards. Read next: linear.py."""

from dataclasses import dataclass

from weft.train.feeding.feeding import Feeding, check_probability


@dataclass(frozen=True, kw_only=True)
class Step(Feeding):
    """`before` until `after_epochs` epochs are complete, then `after`.

    Args:
        after_epochs: epochs completed before the change.
        before: probability of feeding the true token until then.
        after: probability from then on.
        per_sequence: draw once per sequence.
        parallel: see Feeding.
    """

    after_epochs: int
    before: float = 1.0
    after: float = 0.5
    per_sequence: bool = False
    parallel: bool = False

    def __post_init__(self) -> None:
        check_probability("step", before=self.before, after=self.after)

    def probability(self, update: int, epoch: int) -> float:
        """`before` or `after`."""
        return self.before if epoch < self.after_epochs else self.after
