"""The contract of a schedule: by what the learning rate is multiplied at an update.

A schedule is a pure function of the number of the update, of how far training has come, and, for those
that look at the scores of validation, of a state folded over them. Nothing is remembered, so a resumed
run computes the same rates. Read next: inverse_square_root.py, plateau.py.
"""

from abc import ABC, abstractmethod
from typing import Any

from weft.errors import ConfigError

ScheduleState = dict[str, Any]
"""What a schedule makes of the validations so far: plain JSON."""


class Schedule(ABC):
    """Gives the factor of the learning rate."""

    @abstractmethod
    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """The factor of the learning rate.

        Args:
            update: the number of the update about to be taken, from 1.
            done: the part of the planned training it completes, 0 to 1, by updates, epochs, minutes or
                CPU minutes, whichever end is nearest; 0 where no end is planned.
            state: what `start` and `observe` gave.
        """

    def start(self) -> ScheduleState:
        """The state before the first validation."""
        return {}

    def observe(self, state: ScheduleState, score: float, higher: bool) -> ScheduleState:
        """The state after a validation.

        Args:
            state: the state before it.
            score: its score by the metric of the run.
            higher: whether higher is better.
        """
        return state


def warm(update: int, warmup: int) -> float:
    """Linear from 1/warmup at the first update to 1 at update `warmup`, and 1 after it."""
    return min(1.0, update / warmup) if warmup else 1.0


def after_warmup(update: int, done: float, warmup: int) -> float:
    """The part of the training after the warm-up that is over, 0 to 1.

    The planned number of updates is update / done: exact where the end is a number of updates, the best
    guess so far where it is a time.
    """
    if done <= 0 or update <= warmup:
        return 0.0
    planned = update / done
    return min(1.0, (update - warmup) / (planned - warmup)) if planned > warmup else 1.0


def unreached(schedule: Schedule, updates: int) -> str:
    """What to say of a warm-up that is longer than the training; "" where it is not.

    Args:
        schedule: of the training.
        updates: planned ones, 0 for no such plan.
    """
    warmup = getattr(schedule, "warmup", 0)
    if not updates or warmup <= updates:
        return ""
    return (
        f"training.schedule.warmup: {warmup:,} updates are more than the {updates:,} that are planned, so "
        f"the learning rate never reaches its height; set training.schedule.warmup: {max(1, updates // 10)}"
    )


def check_warmup(name: str, warmup: int, least: int = 0) -> None:
    """Refuse a warm-up that is too short.

    Raises:
        ConfigError: naming the schedule.
    """
    if warmup < least:
        raise ConfigError(f"{name}: expected a warmup of at least {least} updates, got {warmup}")
