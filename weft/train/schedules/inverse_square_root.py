"""Linear warm-up to the full learning rate, then decay with the square root of the update.

Read next: noam.py.
"""

from dataclasses import dataclass

from weft.train.schedules.schedule import Schedule, ScheduleState, check_warmup


@dataclass(frozen=True, kw_only=True)
class InverseSquareRoot(Schedule):
    """min(n / warmup, √(warmup / n)): 1 at update `warmup`.

    Args:
        warmup: updates until the full learning rate.
    """

    warmup: int = 4000

    def __post_init__(self) -> None:
        check_warmup("inverse_square_root", self.warmup, 1)

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """At most 1."""
        return min(update / self.warmup, (self.warmup / update) ** 0.5)
