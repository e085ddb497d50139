"""A job: items of one request that are answered in one or more batches.

Read next: lane.py, which answers it.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from weft.documents.segments import Sentence
from weft.errors import WeftError
from weft.serve.limits import Refusal

Stopped = Callable[[], bool]
"""Whether no client is waiting any more; also the place where work of another lane may run."""

Work = Callable[[list[Any], Stopped], Sequence[Any]]
"""Maps items to one answer each; checks `Stopped` at every step and raises `ClientLeft` if it is True."""

PADDED = 16_000
"""Maximum characters of a batch, each text counted as the longest: bounds the longest step of a model."""

ITEM = 100
"""Characters that an input other than text counts as."""


class ClientLeft(Exception):
    """Raised by work when no client is waiting for it any more."""


class BatchJob:
    """Some items of one request.

    Args:
        key: jobs with equal keys may share a batch.
        work: answers items; jobs with equal keys have equivalent work.
        items: the inputs.
        seconds: deadline, after which the job is abandoned.
        size: characters to read and write, roughly; by default those of the items.
        check: called by the thread before the first item is begun; may raise Refusal.
    """

    def __init__(
        self,
        key: Hashable,
        work: Work,
        items: Sequence[Any],
        seconds: float,
        *,
        size: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.key = key
        self.work = work
        self.items = list(items)
        self.size = sum(padded(item) or ITEM for item in self.items) if size is None else size
        self.check = check
        self.until = time.monotonic() + seconds
        self.gone = threading.Event()
        self.left = sorted(range(len(self.items)), key=lambda n: -padded(self.items[n]))  # not begun yet
        self._found: list[Any] = [None] * len(self.items)
        self._missing = len(self.items)
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[list[Any]] = self.loop.create_future()
        timer = self.loop.call_later(seconds, self._answer, late())
        self.answer.add_done_callback(lambda _: timer.cancel())

    def over(self) -> bool:
        """Whether no client is waiting for it any more."""
        return self.gone.is_set() or time.monotonic() > self.until

    def take(self, rows: int) -> list[int]:
        """Begin the next items: as many as fit into a batch, at least one."""
        count = max(1, min(rows, PADDED // max(1, padded(self.items[self.left[0]]))))
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def found(self, numbers: Sequence[int], answers: Sequence[Any]) -> None:
        """Called by the thread: keep some answers, and pass all on once none is missing."""
        for number, answer in zip(numbers, answers, strict=True):
            self._found[number] = answer
        self._missing -= len(numbers)
        if not self._missing:
            self._finish(self._found)

    def fail(self, reason: Exception) -> None:
        """Called by the thread: pass on why there are no answers."""
        self.left = []
        self._finish(reason)

    def _finish(self, found: Sequence[Any] | Exception) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._answer, found)

    def _answer(self, found: Sequence[Any] | Exception) -> None:
        if self.answer.done():
            return
        if isinstance(found, Exception):
            self.answer.set_exception(found)
            self.answer.exception()  # mark as retrieved: if the client has left, no code reads it
        else:
            self.answer.set_result(list(found))


def padded(item: Any) -> int:
    """The characters that a batch is padded to for this item; 0 for other inputs than texts."""
    text = item.text if isinstance(item, Sentence) else item
    return len(text) if isinstance(text, str) else 0


def refusal(error: WeftError | Refusal) -> Refusal:
    """An error of the client's input, as a response."""
    return error if isinstance(error, Refusal) else Refusal(400, str(error))


def late() -> Refusal:
    """The refusal of a job whose deadline has passed."""
    return Refusal(503, "time limit reached; send less text, or try again later", retry_after=5)


def failed() -> Refusal:
    """The refusal of a job on which the model failed."""
    return Refusal(500, "the model failed on this input; see the log of the server")
