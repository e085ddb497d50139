"""Learning rate schedules: the factor of the learning rate at each update.

A schedule is a pure function of the number of the update, the finished share of the training and, for
schedules that depend on validation scores, a state folded over them. Nothing is remembered, so a resumed run
computes the same rates. Read next: history.py.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

from weft.setting_types import AtLeastOne, Bounds, Section, Whole

ScheduleState = dict[str, Any]
"""The state of a schedule after the validations so far, as plain JSON."""


class Schedule(Section, ABC):
    """Gives the factor of the learning rate.

    Raises:
        ConfigError: a setting is out of its range.

    Example:
        >>> @dataclass(frozen=True)
        ... class Halving(Schedule):
        ...     def factor(self, update, done, state):
        ...         return 0.5 ** (update - 1)
        >>> [Halving().factor(update, 0.0, {}) for update in (1, 2, 3)]
        [1.0, 0.5, 0.25]
    """

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
    """A warning if the training is shorter than the warm-up or has fewer updates than cycles, else ""."""
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


@dataclass(frozen=True, kw_only=True)
class ConstantSchedule(Schedule):
    """min(1, n / warmup).

    Args:
        warmup: updates of linear warm-up.

    Example:
        >>> [ConstantSchedule(warmup=4).factor(update, 0.0, {}) for update in (1, 4, 9)]
        [0.25, 1.0, 1.0]
    """

    warmup: Whole = 0

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        return warm(update, self.warmup)


@dataclass(frozen=True, kw_only=True)
class LinearSchedule(Schedule):
    """1 + (floor - 1) p, with p the finished share of the training after the warm-up.

    Args:
        warmup: updates of linear warm-up.
        floor: the factor at the planned end of training.

    Example:
        >>> [round(LinearSchedule(floor=0.1).factor(update, update / 100, {}), 4) for update in (50, 100)]
        [0.55, 0.1]
    """

    warmup: Whole = 0
    floor: float = 0.0

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        part = after_warmup(update, done, self.warmup)
        return warm(update, self.warmup) * (1 + (self.floor - 1) * part)


@dataclass(frozen=True, kw_only=True)
class CosineSchedule(Schedule):
    """floor + (1 - floor) (1 + cos π p) / 2, with p the finished share of the training after the warm-up.

    Args:
        warmup: updates of linear warm-up.
        floor: the factor at the planned end of training.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts.

    Example:
        >>> [round(CosineSchedule().factor(update, update / 100, {}), 4) for update in (50, 75, 100)]
        [0.5, 0.1464, 0.0]
    """

    warmup: Whole = 0
    floor: float = 0.0

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        part = after_warmup(update, done, self.warmup)
        return warm(update, self.warmup) * (
            self.floor + (1 - self.floor) * (1 + math.cos(math.pi * part)) / 2
        )


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

    Example:
        >>> [round(CosineRestarts(cycles=2).factor(update, update / 100, {}), 4) for update in (25, 50, 75)]
        [0.5, 0.0, 0.5]
    """

    cycles: AtLeastOne = 5
    warmup: Whole = 0
    floor: float = 0.0

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        part = self.cycles * after_warmup(update, done, self.warmup)
        share = part - max(0, math.ceil(part - _ROUNDING) - 1)
        return warm(update, self.warmup) * (
            self.floor + (1 - self.floor) * (1 + math.cos(math.pi * min(1.0, share))) / 2
        )

    def cycles_ended(self, update: int, done: float) -> int:
        """All of them at the end of training."""
        return int(self.cycles * after_warmup(update, done, self.warmup) + _ROUNDING)


@dataclass(frozen=True, kw_only=True)
class Noam(Schedule):
    """d^-0.5 min(n^-0.5, n warmup^-1.5).

    Args:
        width: d, the width of the model.
        warmup: updates until the peak, which is (d warmup)^-0.5.

    Source: Vaswani et al. 2017, equation 3.

    Example:
        >>> [round(Noam(width=64, warmup=100).factor(update, 0.0, {}), 6) for update in (50, 100, 400)]
        [0.00625, 0.0125, 0.00625]
    """

    width: AtLeastOne
    warmup: AtLeastOne = 4000

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """The learning rate that `lr` multiplies."""
        return self.width**-0.5 * min(update**-0.5, update * self.warmup**-1.5)


@dataclass(frozen=True, kw_only=True)
class InverseSquareRoot(Schedule):
    """min(n / warmup, √(warmup / n)): 1 at update `warmup`.

    Args:
        warmup: updates until the full learning rate.

    Example:
        >>> [InverseSquareRoot(warmup=100).factor(update, 0.0, {}) for update in (25, 100, 400)]
        [0.25, 1.0, 0.5]
    """

    warmup: AtLeastOne = 4000

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        return min(update / self.warmup, (self.warmup / update) ** 0.5)


@dataclass(frozen=True, kw_only=True)
class Plateau(Schedule):
    """decay^k after k plateaus; a plateau is `patience` validations in a row without a new best score.

    Args:
        decay: factor of the learning rate at each plateau.
        patience: validations without a new best score that make a plateau.
        floor: lowest factor.
        warmup: updates of linear warm-up.

    Example:
        >>> schedule = Plateau(patience=2)
        >>> state = schedule.start()
        >>> for loss in (3.0, 2.0, 2.5, 2.1):  # the last two are no new best
        ...     state = schedule.observe(state, loss, higher=False)
        >>> schedule.factor(100, 0.0, state)
        0.5
    """

    decay: Annotated[float, Bounds(gt=0, lt=1)] = 0.5
    patience: AtLeastOne = 2
    floor: float = 0.01
    warmup: Whole = 0

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        return warm(update, self.warmup) * max(self.floor, self.decay ** state["plateaus"])

    def start(self) -> ScheduleState:
        return {"best": None, "waited": 0, "plateaus": 0}

    def observe(self, state: ScheduleState, score: float, higher: bool) -> ScheduleState:
        """Count the validations since the best one; NaN is never better."""
        best, waited, plateaus = state["best"], state["waited"] + 1, state["plateaus"]
        if not math.isnan(score) and (best is None or (score > best if higher else score < best)):
            best, waited = score, 0
        if waited >= self.patience:
            waited, plateaus = 0, plateaus + 1
        return {"best": best, "waited": waited, "plateaus": plateaus}
