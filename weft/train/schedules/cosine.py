"""Linear warm-up, then half a cosine down to the planned end. Read next: cosine_restarts.py; plateau.py."""

import math
from dataclasses import dataclass

from weft.train.schedules.schedule import Schedule, ScheduleState, after_warmup, check_warmup, warm


@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """floor + (1 - floor) (1 + cos π p) / 2, with p the finished share of the training after the warm-up.

    Args:
        warmup: updates of linear warm-up.
        floor: the factor at the planned end of training.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts.
    """

    warmup: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_warmup("cosine", self.warmup)

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """From 1 to `floor`."""
        part = after_warmup(update, done, self.warmup)
        return warm(update, self.warmup) * (
            self.floor + (1 - self.floor) * (1 + math.cos(math.pi * part)) / 2
        )
