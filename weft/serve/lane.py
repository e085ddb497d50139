"""A lane: a queue of jobs of similar size, and the thread that answers them in batches.

Jobs with the same key share batches. A job that is larger than a batch is cut; after each of its batches it
goes to the end of the queue. The thread never waits for a batch to fill, and a thread that dies is replaced.
Read next: turns.py, which lane computes when; batcher.py, which chooses the lane of a job.
"""

import math
import threading
import time
import traceback
from collections import deque
from typing import NamedTuple

from weft.errors import WeftError
from weft.serve.job import PADDED, BatchJob, ClientLeft, failed, late, padded, refusal
from weft.serve.limits import Refusal
from weft.serve.turns import Turns


class Part(NamedTuple):
    """The items of a job that are in a batch, by number."""

    job: BatchJob
    numbers: list[int]


class Lane:
    """The queue and its thread.

    Args:
        name: name of the thread.
        rows: maximum items per batch.
        turns: time sharing with the other lanes.
        number: this lane's number there.
    """

    def __init__(self, name: str, rows: int, turns: Turns, number: int) -> None:
        self.batches = 0
        self.answered = 0
        self._name = name
        self._rows = rows
        self._turns = turns
        self._number = number
        self._jobs: deque[BatchJob] = deque()
        self._running: list[Part] = []
        self._ready = threading.Condition()
        self._draining = False
        self._begin()

    @property
    def alive(self) -> bool:
        """Whether the thread that runs the batches has not ended."""
        return self._thread.is_alive()

    @property
    def late_seconds(self) -> float:
        """How long the batch still runs after the last of its deadlines; negative before."""
        with self._ready:
            return time.monotonic() - max((part.job.until for part in self._running), default=math.inf)

    @property
    def waiting(self) -> int:
        """Number of waiting items, without those of clients that have left."""
        with self._ready:
            return sum(len(job.left) for job in self._jobs if not job.gone.is_set())

    @property
    def running(self) -> int:
        """Number of items in the current batch."""
        with self._ready:
            return sum(len(part.numbers) for part in self._running)

    @property
    def busy(self) -> bool:
        """Whether any item is waiting or being computed."""
        with self._ready:
            return bool(self._jobs or self._running)

    def put(self, job: BatchJob) -> None:
        """Add a job to the end of the queue."""
        with self._ready:
            self._jobs.append(job)
            self._ready.notify()

    def drain(self) -> None:
        """End the thread once the waiting jobs are answered."""
        with self._ready:
            self._draining = True
            self._ready.notify()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while parts := self._next():
                self._turns.begin(self._number)
                try:
                    self._run([part for part in parts if self._passes(part.job)])
                finally:
                    self._turns.end(self._number)
                with self._ready:
                    self._running = []
        except BaseException as error:  # noqa: BLE001  a panic in compiled code is not an Exception
            traceback.print_exception(error)
            with self._ready:
                parts, self._running = self._running, []
                self._begin()  # first, because an answered client may send its next request
            for part in parts:
                part.job.fail(failed())

    def _next(self) -> list[Part]:
        """The next batch; empty at shutdown."""
        while True:
            with self._ready:
                while not self._jobs:
                    if self._draining:
                        return []
                    self._ready.wait()
                over = [job for job in self._jobs if job.over()]
                self._jobs = deque(job for job in self._jobs if job.left and not job.over())
                self._running = self._batch() if self._jobs else []
                parts = self._running
            for job in over:
                job.fail(late())
            if parts:
                return parts

    def _batch(self) -> list[Part]:
        """Items of the first job, and the jobs with the same key that fit in beside them."""
        first = self._jobs.popleft()
        parts = [Part(first, first.take(self._rows))]
        rows, longest = len(parts[0].numbers), padded(first.items[parts[0].numbers[0]])
        for job in [one for one in self._jobs if one.key == first.key]:
            most = max(longest, padded(job.items[job.left[0]]))
            if rows + len(job.left) <= self._rows and most * (rows + len(job.left)) <= PADDED:
                rows, longest = rows + len(job.left), most
                parts.append(Part(job, job.take(len(job.left))))
                self._jobs.remove(job)
        if first.left:
            self._jobs.append(first)
        return parts

    def _passes(self, job: BatchJob) -> bool:
        """Check a job of which nothing was begun yet."""
        check, job.check = job.check, None
        try:
            if check is not None:
                check()
        except (WeftError, Refusal) as error:
            job.fail(refusal(error))
            return False
        return True

    def _run(self, parts: list[Part]) -> None:
        if not parts:
            return
        items = [part.job.items[n] for part in parts for n in part.numbers]

        def stopped() -> bool:
            self._turns.pause(self._number)
            return all(part.job.over() for part in parts)

        try:
            found = list(parts[0].job.work(items, stopped))
        except ClientLeft:
            for part in parts:
                part.job.fail(late())
            return
        except (WeftError, Refusal) as error:
            if len(parts) == 1:
                parts[0].job.fail(refusal(error))
                return
            for part in parts:  # one job is at fault and must not fail the others
                self._run([part])
            return
        except Exception as error:  # noqa: BLE001  the server logs any error and keeps running
            traceback.print_exception(error)
            for part in parts:
                part.job.fail(failed())
            return
        self.batches += 1
        self.answered += len(items)
        for part in parts:
            part.job.found(part.numbers, found[: len(part.numbers)])
            del found[: len(part.numbers)]
