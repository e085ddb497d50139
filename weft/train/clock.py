"""Measure the time of updates, for the position and the progress lines. Read next: training_state.py."""

import time
from typing import NamedTuple

from weft.train.position import BatchGroup, Position
from weft.train.reporting import Line
from weft.train.settings import TrainingSettings
from weft.train.update import UpdateResult


class Moment(NamedTuple):
    """A moment, in seconds of wall-clock and CPU time."""

    wall: float
    cpu: float


def now() -> Moment:
    """Wall-clock time and the CPU time of this process, both in seconds."""
    return Moment(time.perf_counter(), time.process_time())


class TrainingClock:
    """Counts time, continuing from what a resumed position has already spent.

    Args:
        position: where this process starts.
        settings: training settings, for the planned end.
        first: whether this is the first process, whose wall-clock time counts.
    """

    def __init__(self, position: Position, settings: TrainingSettings, *, first: bool = True) -> None:
        self._settings = settings
        self._begin = position
        self._started = now()
        self._first = first

    def spent(self) -> Moment:
        """Time spent by this process since training began, including resumed parts."""
        end = now()
        cpu = end.cpu - self._started.cpu
        if not self._first:
            return Moment(0.0, cpu)
        return Moment(self._begin.seconds + end.wall - self._started.wall, self._begin.cpu_seconds + cpu)

    def after(
        self, before: Moment, position: Position, group: BatchGroup, taken: UpdateResult, spent: Moment
    ) -> Position:
        """The position after an update that started at `before`; `spent` is summed over all processes."""
        end = now()
        return Position(
            update=position.update + 1,
            epoch=group.next_epoch,
            index=group.next_index,
            batches=group.batches,
            skipped=position.skipped + (not taken.stepped),
            seconds=spent.wall,
            cpu_seconds=spent.cpu,
            tokens=position.tokens + taken.tokens,
            total=position.total + taken.total,
            count=position.count + taken.count,
            recent_tokens=position.recent_tokens + taken.tokens,
            wall=position.wall + end.wall - before.wall,
            cpu=position.cpu + end.cpu - before.cpu,
            cycles=position.cycles,
        )

    def line(self, position: Position, taken: UpdateResult) -> Line:
        """The progress line at a position."""
        done = position.done(self._settings)
        gained = done - self._begin.done(self._settings)
        spent = position.seconds - self._begin.seconds
        return Line(
            update=position.update,
            epoch=position.epoch,
            done=done,
            loss=position.total / position.count if position.count else 0.0,
            lr=taken.rate,
            gradient_norm=taken.norm if taken.stepped else 0.0,
            feeding=taken.feeding,
            skipped=position.skipped,
            tokens=position.tokens,
            tokens_per_second=position.recent_tokens / max(position.wall, 1e-9),
            tokens_per_cpu_second=position.recent_tokens / max(position.cpu, 1e-9),
            seconds=position.seconds,
            cpu_seconds=position.cpu_seconds,
            seconds_left=spent * (1 - done) / gained if gained > 0 else 0.0,
        )
