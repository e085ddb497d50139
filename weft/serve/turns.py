"""Time sharing between threads: one computes at a time, and short work gets most of the time.

Each lane has a share. A lane's clock advances by the time that it computes, divided by its share; whenever
the computing lane pauses, the waiting lane whose clock is furthest behind continues. A lane that was idle
starts level with the others, less a head start, so that it cannot save up time. Read next: lane.py.
"""

import threading
import time
from collections.abc import Callable, Sequence

HEAD_START = 0.1
"""Seconds, divided by the share, that a lane gets at once after it was idle."""


class Turns:
    """Who may compute.

    Args:
        shares: the share of each lane, in proportion to the others.
        clock: seconds; a test may count steps instead.
        head_start: seconds that a lane gets at once after it was idle.

    Example:
        >>> turns = Turns([4, 1])
        >>> turns.begin(0)
        >>> turns.pause(0)  # at each step: another lane may compute now
        >>> turns.end(0)
    """

    def __init__(
        self,
        shares: Sequence[float],
        *,
        clock: Callable[[], float] = time.monotonic,
        head_start: float = HEAD_START,
    ) -> None:
        self._shares = shares
        self._clock = clock
        self._head_start = head_start
        self._used = [0.0] * len(shares)
        self._active: set[int] = set()
        self._holder: int | None = None
        self._since = 0.0
        self._free = threading.Condition()

    def begin(self, lane: int) -> None:
        """Wait for the first turn of some work."""
        with self._free:
            if self._active:
                level = min(self._used[one] for one in self._active)
                self._used[lane] = max(self._used[lane], level - self._head_start)
            self._active.add(lane)
            self._wait(lane)

    def pause(self, lane: int) -> None:
        """Let another lane compute if it is its turn, and wait for the next turn."""
        with self._free:
            self._release(lane)
            self._wait(lane)

    def end(self, lane: int) -> None:
        """The work has ended, or was given up."""
        with self._free:
            if self._holder == lane:
                self._release(lane)
            self._active.discard(lane)
            self._free.notify_all()

    def _release(self, lane: int) -> None:
        self._used[lane] += (self._clock() - self._since) / self._shares[lane]
        self._holder = None

    def _wait(self, lane: int) -> None:
        while self._holder is not None or lane != self._next():
            self._free.notify_all()
            self._free.wait()
        self._holder, self._since = lane, self._clock()

    def _next(self) -> int:
        return min(self._active, key=lambda one: (self._used[one], one))
