"""SIGTERM and Ctrl-C: finish the update, save, say how to resume. A second signal exits at once.

During an update a signal is only noted, and the next `at_once` block stops there. Long phases that can be
cut without loss (reading data; validation, which follows a save) run inside `at_once`, where the signal
becomes an exception. Exit codes: 130 for Ctrl-C, 143 for SIGTERM. Read next: loop.py, course.py.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """A signal in a block that may be cut."""


class Interrupts:
    """Watches for signals inside its block; outside the main thread it watches for nothing."""

    def __init__(self, *, together: bool = False) -> None:
        """`together`: of several processes, so that a signal counts once `agree` was called with it."""
        self._together = together
        self._agreed = 0
        self._asked = 0
        self._cut = False
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> int:
        """The number of the signal that came, 0 if none."""
        return self._asked

    @property
    def exit_code(self) -> int:
        """What a shell expects: 128 and the signal."""
        return 128 + self._asked if self._asked else 0

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A block that a signal cuts, one that came before it included.

        Raises:
            Interrupted: a signal arrived.
        """
        self._cut = not self._together
        try:
            if self._agreed if self._together else self._asked:
                raise Interrupted
            yield
        finally:
            self._cut = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block of one process of several that a signal cuts: it must tell the others.

        Raises:
            Interrupted: a signal arrived.
        """
        before, self._cut = self._cut, True
        try:
            if self._asked:
                raise Interrupted
            yield
        finally:
            self._cut = before

    def agree(self, number: int) -> None:
        """All processes heard of this signal (0 for none); the next block that may be cut ends there."""
        self._agreed = number
        self._asked = self._asked or number

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            _leave(number)
        self._asked = number
        if self._cut:
            raise Interrupted


def _leave(number: int) -> None:
    # Not sys.exit: that would wait for whatever the first signal is waiting for. Saves are whole or not
    # there, so nothing is lost.
    if sys.stderr.isatty():
        os.write(2, b"\x1b[?25h\n")  # a progress bar hides the cursor
    os._exit(128 + number)
