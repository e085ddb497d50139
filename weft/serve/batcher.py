"""Dynamic batching: one thread answers waiting requests together.

Requests that arrive while a batch is computed form the next batch, if they have the same key. The thread
never waits for a batch to fill. The event loop enforces deadlines, independently of the thread. A thread that
dies is replaced. Read next: answers.py, what a batch computes; app.py.
"""

import asyncio
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from weft.errors import WeftError
from weft.serve.limits import Refusal

Stopped = Callable[[], bool]
STUCK_SECONDS = 10.0
"""A batch is stuck if it still runs this long after the last of its deadlines."""

Work = Callable[[list[Any], Stopped], Sequence[Any]]
"""Maps items to one answer each; should check `Stopped` at every step and raise `Left` if it is True."""


class Left(Exception):
    """Raised by work when no client is waiting for it any more."""


class Job:
    """Some items of one request.

    Args:
        key: jobs with equal keys may share a batch.
        work: answers items; jobs with equal keys have equivalent work.
        items: the inputs.
        seconds: deadline, after which the job is abandoned.
    """

    def __init__(self, key: Hashable, work: Work, items: Sequence[Any], seconds: float) -> None:
        self.key = key
        self.work = work
        self.items = list(items)
        self.until = time.monotonic() + seconds
        self.gone = threading.Event()
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[list[Any]] = self.loop.create_future()
        timer = self.loop.call_later(seconds, self._answer, _late())
        self.answer.add_done_callback(lambda _: timer.cancel())

    def over(self) -> bool:
        """Whether no client is waiting for it any more."""
        return self.gone.is_set() or time.monotonic() > self.until

    def finish(self, found: Sequence[Any] | Exception) -> None:
        """Called by the thread: pass on the answers, or the reason why there are none."""
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


class Batcher:
    """A bounded queue and the thread that empties it.

    Args:
        name: name of the thread.
        most: maximum number of waiting items.
        rows: maximum items per batch; a larger job is a batch of its own.
    """

    def __init__(self, name: str, *, most: int, rows: int) -> None:
        self.most = most
        self.rows = rows
        self.batches = 0
        self.answered = 0
        self._jobs: deque[Job] = deque()
        self._running: list[Job] = []
        self._ready = threading.Condition()
        self._draining = False
        self._name = name
        self._begin()

    @property
    def trouble(self) -> str:
        """Why requests are not being answered, as text for people; empty if they are."""
        with self._ready:
            if not self._thread.is_alive():
                return f"the thread for {self._name} has ended"
            late = time.monotonic() - max((job.until for job in self._running), default=math.inf)
        return f"a batch of {self._name} does not finish" if late > STUCK_SECONDS else ""

    @property
    def waiting(self) -> int:
        """Number of waiting items, without those of clients that have left."""
        with self._ready:
            return sum(len(job.items) for job in self._jobs if not job.gone.is_set())

    @property
    def running(self) -> int:
        """Number of items in the current batch."""
        with self._ready:
            return sum(len(job.items) for job in self._running)

    @property
    def busy(self) -> bool:
        """Whether any item is waiting or being computed."""
        with self._ready:
            return bool(self._jobs or self._running)

    def put(self, job: Job) -> Job:
        """Add a job to the queue.

        Raises:
            Refusal: the queue is full, or the server is shutting down.
        """
        with self._ready:
            if self._draining:
                raise Refusal(503, "the server is shutting down; try again later", retry_after=5)
            waiting = sum(len(one.items) for one in self._jobs if not one.gone.is_set())
            if waiting + len(job.items) > self.most:
                raise Refusal(
                    429,
                    f"too many requests: {waiting} texts are waiting, maximum {self.most}; try again soon",
                    retry_after=1,
                )
            self._jobs.append(job)
            self._ready.notify()
        return job

    async def ask(self, job: Job) -> list[Any]:
        """Put a job and wait for its answers; cancelling the wait frees its place in the queue.

        Raises:
            Refusal: as `put`; the items are invalid; or the deadline has passed.
        """
        self.put(job)
        try:
            return await job.answer
        finally:
            job.gone.set()

    def drain(self) -> None:
        """Accept no more jobs; waiting ones are still answered."""
        with self._ready:
            self._draining = True
            self._ready.notify()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while jobs := self._next():
                self._run(jobs)
                with self._ready:
                    self._running = []
        except BaseException as error:  # noqa: BLE001  a panic in compiled code is not an Exception
            traceback.print_exception(error)
            with self._ready:
                jobs, self._running = self._running, []
                self._begin()  # first, because an answered client may send its next request
            for job in jobs:
                job.finish(_failed())

    def _next(self) -> list[Job]:
        """The jobs of the next batch; empty at shutdown."""
        while True:
            with self._ready:
                while not self._jobs:
                    if self._draining:
                        return []
                    self._ready.wait()
                first = self._jobs.popleft()
                batch, rows, others = [first], len(first.items), deque[Job]()
                for job in self._jobs:
                    if job.key == first.key and rows + len(job.items) <= self.rows:
                        batch.append(job)
                        rows += len(job.items)
                    else:
                        others.append(job)
                self._jobs = others
                live = [job for job in batch if not job.over()]
                self._running = live
            for job in batch:
                if job not in live:
                    job.finish(_late())
            if live:
                return live

    def _run(self, jobs: list[Job]) -> None:
        items = [item for job in jobs for item in job.items]
        try:
            found = list(jobs[0].work(items, lambda: all(job.over() for job in jobs)))
        except Left:
            for job in jobs:
                job.finish(_late())
            return
        except (WeftError, Refusal) as error:
            if len(jobs) == 1:
                jobs[0].finish(error if isinstance(error, Refusal) else Refusal(400, str(error)))
                return
            for job in jobs:  # one job is at fault and must not fail the others
                self._run([job])
            return
        except Exception as error:  # noqa: BLE001  the server logs any error and keeps running
            traceback.print_exception(error)
            for job in jobs:
                job.finish(_failed())
            return
        self.batches += 1
        self.answered += len(items)
        for job in jobs:
            job.finish(found[: len(job.items)])
            del found[: len(job.items)]


def _late() -> Refusal:
    return Refusal(503, "time limit reached; send less text, or try again later", retry_after=5)


def _failed() -> Refusal:
    return Refusal(500, "the model failed on this input; see the log of the server")
