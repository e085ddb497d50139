"""Linear warm-up, then linearly down to the planned end. Read next: cosine.py."""

from dataclasses import dataclass

from weft.train.schedules.schedule import Schedule, ScheduleState, after_warmup, check_warmup, warm


@dataclass(frozen=True, kw_only=True)
class Linear(Schedule):
    """1 + (floor - 1) p, with p the finished share of the training after the warm-up.

    Args:
        warmup: updates of linear warm-up.
        floor: the factor at the planned end of training.
    """

    warmup: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_warmup("linear", self.warmup)

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """From 1 to `floor`."""
        part = after_warmup(update, done, self.warmup)
        return warm(update, self.warmup) * (1 + (self.floor - 1) * part)
