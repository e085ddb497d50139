"""The schedule of the original Transformer: it is the learning rate itself, so set `lr` near 1.

Read next: inverse_square_root.py, the same curve with its peak at `lr`.
"""

from dataclasses import dataclass

from weft.errors import ConfigError
from weft.train.schedules.schedule import Schedule, ScheduleState, check_warmup


@dataclass(frozen=True, kw_only=True)
class Noam(Schedule):
    """d^-0.5 min(n^-0.5, n warmup^-1.5).

    Args:
        width: d, the width of the model.
        warmup: updates until the peak, which is (d warmup)^-0.5.

    Source: Vaswani et al. 2017, equation 3.
    """

    width: int
    warmup: int = 4000

    def __post_init__(self) -> None:
        check_warmup("noam", self.warmup, 1)
        if self.width < 1:
            raise ConfigError(f"noam: expected the width of the model, got {self.width}")

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """The learning rate that `lr` multiplies."""
        return self.width**-0.5 * min(update**-0.5, update * self.warmup**-1.5)
