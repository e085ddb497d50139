"""A constant learning rate, optionally after a warm-up. Read next: linear.py."""

from dataclasses import dataclass

from weft.train.schedules.schedule import Schedule, ScheduleState, check_warmup, warm


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """min(1, n / warmup).

    Args:
        warmup: updates of linear warm-up.
    """

    warmup: int = 0

    def __post_init__(self) -> None:
        check_warmup("constant", self.warmup)

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """1 after the warm-up."""
        return warm(update, self.warmup)
