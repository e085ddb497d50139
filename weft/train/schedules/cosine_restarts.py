"""Several cosines one after the other: each cycle ends at another good model, for a snapshot ensemble.

The weights at the end of each cycle are kept in RUN/cycles; see checkpoints.py. Read next: cosine.py.
"""

import math
from dataclasses import dataclass

from weft.errors import ConfigError
from weft.train.schedules.schedule import Schedule, ScheduleState, after_warmup, check_warmup, warm

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class CosineRestarts(Schedule):
    """floor + (1 - floor) (1 + cos π q) / 2, with q the finished share of the cycle.

    Args:
        cycles: number of cycles, equally long after the warm-up; the weights at the end of each are kept in
            RUN/cycles, for `weft predict RUN --ensemble RUN/cycles`.
        warmup: updates of linear warm-up.
        floor: the factor at the end of each cycle.

    Source: Huang et al. 2017, equation 2 (snapshot ensembles); Loshchilov and Hutter 2017, equation 5, with
    T_mult = 1.
    """

    cycles: int = 5
    warmup: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_warmup("cosine_restarts", self.warmup)
        if self.cycles < 1:
            raise ConfigError(f"cosine_restarts: expected at least 1 cycle, got {self.cycles}")

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """From 1 to `floor` in each cycle."""
        part = self.cycles * after_warmup(update, done, self.warmup)
        share = part - max(0, math.ceil(part - _ROUNDING) - 1)
        return warm(update, self.warmup) * (
            self.floor + (1 - self.floor) * (1 + math.cos(math.pi * min(1.0, share))) / 2
        )

    def cycles_ended(self, update: int, done: float) -> int:
        """All of them at the end of training."""
        return int(self.cycles * after_warmup(update, done, self.warmup) + _ROUNDING)
