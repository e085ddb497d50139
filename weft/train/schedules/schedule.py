"""The contract of a schedule: the factor of the learning rate at each update.

A schedule is a pure function of the number of the update, the finished share of the training and, for
schedules that depend on validation scores, a state folded over them. Nothing is remembered, so a resumed run
computes the same rates. Read next: inverse_square_root.py, plateau.py.
"""

from abc import ABC, abstractmethod
from typing import Any

from weft.errors import ConfigError

ScheduleState = dict[str, Any]
"""The state of a schedule after the validations so far, as plain JSON."""


class Schedule(ABC):
    """Gives the factor of the learning rate."""

    @abstractmethod
    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """The factor of the learning rate.

        Args:
            update: number of the next update, from 1.
            done: share of the planned training that it completes, 0 to 1, by updates, epochs, minutes or CPU
                minutes, whichever limit is nearest; 0 without a limit.
            state: from `start` and `observe`.
        """

    def cycles_ended(self, update: int, done: float) -> int:
        """Number of cycles that end at this update or before; 0 for a schedule without cycles.

        Args:
            update: number of updates so far.
            done: share of the planned training that they complete; see `factor`.
        """
        return 0

    def start(self) -> ScheduleState:
        """The state before the first validation."""
        return {}

    def observe(self, state: ScheduleState, score: float, higher: bool) -> ScheduleState:
        """The state after a validation.

        Args:
            state: state before it.
            score: its score by the metric of the run.
            higher: whether higher is better.
        """
        return state


def warm(update: int, warmup: int) -> float:
    """Linear from 1/warmup at the first update to 1 at update `warmup`, and 1 after it."""
    return min(1.0, update / warmup) if warmup else 1.0


def after_warmup(update: int, done: float, warmup: int) -> float:
    """The finished share of the training after the warm-up, 0 to 1.

    The planned number of updates is update / done: exact if the limit is a number of updates, an estimate if
    it is a time.
    """
    if done <= 0 or update <= warmup:
        return 0.0
    planned = update / done
    return min(1.0, (update - warmup) / (planned - warmup)) if planned > warmup else 1.0


def unreached(schedule: Schedule, updates: int) -> str:
    """A warning if the training is shorter than the warm-up or has fewer updates than cycles, else "".

    Args:
        schedule: schedule of the training.
        updates: planned number of updates; 0 if unknown.
    """
    warmup, cycles = getattr(schedule, "warmup", 0), getattr(schedule, "cycles", 0)
    if 0 < updates < cycles:
        return (
            f"training.schedule.cycles: expected at most the {updates:,} planned updates, got {cycles:,}, so "
            "cycles end before they have trained; set fewer"
        )
    if not updates or warmup <= updates:
        return ""
    return (
        f"training.schedule.warmup: expected at most the {updates:,} planned updates, got {warmup:,}, so the "
        f"learning rate never reaches its peak; set training.schedule.warmup: {max(1, updates // 10)}"
    )


def check_warmup(name: str, warmup: int, least: int = 0) -> None:
    """Check the length of a warm-up.

    Raises:
        ConfigError: it is too short; the message names the schedule.
    """
    if warmup < least:
        raise ConfigError(f"{name}: expected a warmup of at least {least} updates, got {warmup}")
