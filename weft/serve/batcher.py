"""Dynamic batching: waiting requests are answered together, short ones before the end of long ones.

A job goes to the lane of its size; each lane has a queue and a thread, and the lanes share the time so that a
short job is answered while a long one is computed. The event loop enforces deadlines, independently of the
threads. Read next: lane.py; answers.py, what a batch computes; app.py.
"""

from typing import Any

from weft.serve.job import BatchJob
from weft.serve.lane import Lane
from weft.serve.limits import Refusal
from weft.serve.turns import Turns
from weft.wording import plural

SIZES = (500, 5_000)
"""Maximum size of a job, in characters, of every lane but the last."""

SHARES = (4, 2, 1)
"""The share of the time of each lane while all have work."""

STUCK_SECONDS = 10.0
"""A batch is stuck if it still runs this long after the last of its deadlines."""


class Batcher:
    """A bounded queue and the threads that empty it.

    Args:
        name: name of the threads.
        most: maximum number of waiting items.
        rows: maximum items per batch; a larger job is cut into several.
    """

    def __init__(self, name: str, *, most: int, rows: int) -> None:
        self.most = most
        self._name = name
        self._draining = False
        turns = Turns(SHARES)
        self._lanes = [Lane(name, rows, turns, number) for number in range(len(SHARES))]

    @property
    def batches(self) -> int:
        """Number of batches answered."""
        return sum(lane.batches for lane in self._lanes)

    @property
    def answered(self) -> int:
        """Number of items answered."""
        return sum(lane.answered for lane in self._lanes)

    @property
    def trouble(self) -> str:
        """Why requests are not being answered, as text for people; empty if they are."""
        if not all(lane.alive for lane in self._lanes):
            return f"the thread for {self._name} has ended"
        late = any(lane.late_seconds > STUCK_SECONDS for lane in self._lanes)
        return f"a batch of {self._name} does not finish" if late else ""

    @property
    def waiting(self) -> int:
        """Number of waiting items, without those of clients that have left."""
        return sum(lane.waiting for lane in self._lanes)

    @property
    def running(self) -> int:
        """Number of items in the current batches."""
        return sum(lane.running for lane in self._lanes)

    @property
    def busy(self) -> bool:
        """Whether any item is waiting or being computed."""
        return any(lane.busy for lane in self._lanes)

    def put(self, job: BatchJob) -> BatchJob:
        """Add a job to the queue of its size; called by the event loop only.

        Raises:
            Refusal: the queue is full, or the server is shutting down.
        """
        if self._draining:
            raise Refusal(503, "the server is shutting down; try again later", retry_after=5)
        waiting = self.waiting
        if waiting + len(job.items) > self.most:
            raise Refusal(
                429,
                f"too many requests: {plural(waiting, 'waiting text')}, maximum {self.most}; try again soon",
                retry_after=1,
            )
        self._lanes[sum(job.size > size for size in SIZES)].put(job)
        return job

    async def ask(self, job: BatchJob) -> list[Any]:
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
        self._draining = True
        for lane in self._lanes:
            lane.drain()
