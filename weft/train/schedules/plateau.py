"""The learning rate falls when validation scores stop improving. Read next: ../history.py."""

import math
from dataclasses import dataclass

from weft.errors import ConfigError
from weft.train.schedules.schedule import Schedule, ScheduleState, check_warmup, warm


@dataclass(frozen=True, kw_only=True)
class Plateau(Schedule):
    """decay^k after k plateaus; a plateau is `patience` validations in a row without a new best score.

    Args:
        decay: factor of the learning rate at each plateau.
        patience: validations without a new best score that make a plateau.
        floor: lowest factor.
        warmup: updates of linear warm-up.
    """

    decay: float = 0.5
    patience: int = 2
    floor: float = 0.01
    warmup: int = 0

    def __post_init__(self) -> None:
        check_warmup("plateau", self.warmup)
        if not 0 < self.decay < 1:
            raise ConfigError(f"plateau: expected a decay between 0 and 1, got {self.decay}")
        if self.patience < 1:
            raise ConfigError(f"plateau: expected a patience of at least 1 validation, got {self.patience}")

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """1 until the first plateau."""
        return warm(update, self.warmup) * max(self.floor, self.decay ** state["plateaus"])

    def start(self) -> ScheduleState:
        """No score yet."""
        return {"best": None, "waited": 0, "plateaus": 0}

    def observe(self, state: ScheduleState, score: float, higher: bool) -> ScheduleState:
        """Count the validations since the best one; NaN is never better."""
        best, waited, plateaus = state["best"], state["waited"] + 1, state["plateaus"]
        if not math.isnan(score) and (best is None or (score > best if higher else score < best)):
            best, waited = score, 0
        if waited >= self.patience:
            waited, plateaus = 0, plateaus + 1
        return {"best": best, "waited": waited, "plateaus": plateaus}
