"""Dynamic batching: waiting requests are answered together, short ones before the end of long ones.

A job goes to the lane of its size. Each lane has a queue and a thread that answers it in batches, so a short
job is answered while a long one is computed. The event loop enforces deadlines, independently of the threads.
Read next: translation.py, what a batch computes; app.py.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from typing import Any, NamedTuple

from weft.errors import WeftError
from weft.serve.limits import Refusal, print_error, refusal_of_disk
from weft.text.segments import Sentence
from weft.wording import plural

Stopped = Callable[[], bool]  # whether no client is waiting any more
Work = Callable[[list[Any], Stopped], Sequence[Any]]
"""Maps items to one answer each; checks `Stopped` at every step and raises `ClientLeft` if it is True."""

Emit = Callable[[dict[str, Any]], None]
"""Sends an event to the client, from the thread that computes it."""

StreamWork = Callable[[list[Any], Emit, Stopped], None]
"""Answers items by events; otherwise as `Work`."""

SIZES = (500, 5_000)  # maximum size of a job, in characters, of every lane but the last
PADDED = 16_000
"""Maximum characters of a batch, each text counted as the longest: bounds the longest step of a model."""

RESERVED = 8
"""A client may always have this part of the queue (one divided by it), however much of it others have."""

CLIENTS = 1000  # maximum number of clients whose last turn is remembered
ITEM = 100  # characters that an input other than text counts as
STUCK_SECONDS = 10.0
"""A batch is stuck if it still runs this long after the last of its deadlines."""


class ClientLeft(Exception):
    """Raised by work when no client is waiting for it any more."""


class BatchJob:
    """Some items of one request, answered in one or more batches within some seconds.

    Jobs with equal keys have equivalent work and may share a batch. `size` counts the characters to read and
    write, roughly; the thread calls `check`, which may raise Refusal, before it begins the first item.
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
        client: str = "",
    ) -> None:
        self.client = client
        self.key = key
        self.work = work
        self.items = list(items)
        self.size = sum(_padded(item) or ITEM for item in self.items) if size is None else size
        self.check = check
        self.until = time.monotonic() + seconds
        self.gone = threading.Event()
        self.left = sorted(range(len(self.items)), key=lambda n: -_padded(self.items[n]))  # not begun yet
        self._found: list[Any] = [None] * len(self.items)
        self._missing = len(self.items)
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[list[Any]] = self.loop.create_future()
        timer = self.loop.call_later(seconds, self._answer, _late())
        self.answer.add_done_callback(lambda _: timer.cancel())

    def over(self) -> bool:
        """Whether no client is waiting for it any more."""
        return self.gone.is_set() or time.monotonic() > self.until

    def take(self, rows: int) -> list[int]:
        """Begin the next items: as many as fit into a batch, at least one."""
        count = max(1, min(rows, PADDED // max(1, _padded(self.items[self.left[0]]))))
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def found(self, numbers: Sequence[int], answers: Sequence[Any]) -> None:
        """Called by the thread: keep some answers, and pass all on once none is missing."""
        for number, answer in zip(numbers, answers, strict=True):
            self._found[number] = answer
        self._missing -= len(numbers)
        if not self._missing:
            self._finish(self._found)

    def fail(self, reason: WeftError | Refusal) -> None:
        """Called by the thread: pass on why there are no answers."""
        self.left = []
        self._finish(reason if isinstance(reason, Refusal) else Refusal(400, str(reason)))

    def _finish(self, found: Sequence[Any] | Refusal) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._answer, found)

    def _answer(self, found: Sequence[Any] | Refusal) -> None:
        if self.answer.done():
            return
        if isinstance(found, Refusal):
            self.answer.set_exception(found)
            self.answer.exception()  # mark as retrieved: if the client has left, no code reads it
        else:
            self.answer.set_result(list(found))


class Part(NamedTuple):
    """The items of a job that are in a batch, by number."""

    job: BatchJob
    numbers: list[int]


class Lane:
    """A queue of jobs of similar size, and the thread that answers them in batches.

    Clients take turns. Jobs with the same key share batches. A job that is larger than a batch is cut; after
    each of its batches it goes to the end of the queue. A thread never waits for a batch to fill; one that
    dies is replaced.
    """

    def __init__(self, name: str, rows: int) -> None:
        self.batches = 0
        self.answered = 0
        self._name = name
        self._rows = rows
        self._jobs: deque[BatchJob] = deque()
        self._served: dict[str, int] = {}
        """Client to the number of its last turn, the longest ago first."""
        self._count = 0
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

    def waiting_of(self, client: str) -> int:
        """Number of waiting items of a client."""
        with self._ready:
            return sum(len(job.left) for job in self._jobs if job.client == client and not job.gone.is_set())

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

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended: a process that exits while one computes is aborted."""
        self._thread.join(seconds)

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while parts := self._next():
                self._run([part for part in parts if self._passes(part.job)])
                with self._ready:
                    self._running = []
        except BaseException as error:  # noqa: BLE001  a panic in compiled code is not an Exception
            print_error(error)
            with self._ready:
                parts, self._running = self._running, []
                self._begin()  # first, because an answered client may send its next request
            for part in parts:
                part.job.fail(_failed())

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
                job.fail(_late())
            if parts:
                return parts

    def _batch(self) -> list[Part]:
        """Items of the next job, and the jobs with the same key that fit in beside them."""
        first = self._turn()
        parts = [Part(first, first.take(self._rows))]
        rows, longest = len(parts[0].numbers), _padded(first.items[parts[0].numbers[0]])
        for job in [one for one in self._jobs if one.key == first.key]:
            most = max(longest, _padded(job.items[job.left[0]]))
            if rows + len(job.left) <= self._rows and most * (rows + len(job.left)) <= PADDED:
                rows, longest = rows + len(job.left), most
                parts.append(Part(job, job.take(len(job.left))))
                self._jobs.remove(job)
        if first.left:
            self._jobs.append(first)
        return parts

    def _turn(self) -> BatchJob:
        """The first job of the client whose last turn was longest ago."""
        first = min(self._jobs, key=lambda job: self._served.get(job.client, 0))
        self._jobs.remove(first)
        self._count += 1
        self._served.pop(first.client, None)
        self._served[first.client] = self._count
        if len(self._served) > CLIENTS:
            del self._served[next(iter(self._served))]
        return first

    def _passes(self, job: BatchJob) -> bool:
        """Check a job of which nothing was begun yet."""
        check, job.check = job.check, None
        try:
            if check is not None:
                check()
        except (WeftError, Refusal) as error:
            job.fail(error)
            return False
        return True

    def _run(self, parts: list[Part]) -> None:
        if not parts:
            return
        items = [part.job.items[n] for part in parts for n in part.numbers]

        try:
            found = list(parts[0].job.work(items, lambda: all(part.job.over() for part in parts)))
        except (WeftError, Refusal) as error:
            if len(parts) == 1:
                parts[0].job.fail(error)
                return
            for part in parts:  # one job is at fault and must not fail the others
                self._run([part])
            return
        except Exception as error:  # noqa: BLE001  the server logs any error and keeps running
            refusal = _late() if isinstance(error, ClientLeft) else refusal_of_disk(error)
            if refusal is None:
                print_error(error)
            for part in parts:
                part.job.fail(refusal or _failed())
            return
        self.batches += 1
        self.answered += len(items)
        for part in parts:
            part.job.found(part.numbers, found[: len(part.numbers)])
            del found[: len(part.numbers)]


LAST_SECONDS = 2.0  # how long `Batcher.drain` waits for the threads to end


class Batcher:
    """A bounded queue in lanes, and the threads that empty it."""

    def __init__(self, name: str, *, most: int, rows: int) -> None:
        self.most = most
        self._name = name
        self._draining = False
        self._lanes = [Lane(name, rows) for _ in range(len(SIZES) + 1)]

    @property
    def batches(self) -> int:
        """Number of batches answered."""
        return sum(lane.batches for lane in self._lanes)

    @property
    def answered(self) -> int:
        """Number of items answered."""
        return sum(lane.answered for lane in self._lanes)

    @property
    def waiting(self) -> int:
        """Number of waiting items, without those of clients that have left."""
        return sum(lane.waiting for lane in self._lanes)

    @property
    def running(self) -> int:
        """Number of items in the current batches."""
        return sum(lane.running for lane in self._lanes)

    @property
    def trouble(self) -> str:
        """Why requests are not being answered, as text for people; empty if they are."""
        if not all(lane.alive for lane in self._lanes):
            return f"the thread for {self._name} has ended"
        late = any(lane.late_seconds > STUCK_SECONDS for lane in self._lanes)
        return f"a batch of {self._name} does not finish" if late else ""

    def put(self, job: BatchJob) -> None:
        """Add a job to the queue of its size; called by the event loop only."""
        if self._draining:
            raise Refusal(503, "the server is shutting down; try again later", retry_after=5)
        waiting, new = self.waiting, len(job.items)
        own = sum(lane.waiting_of(job.client) for lane in self._lanes)
        reserved = own + new <= self.most // RESERVED and waiting + new <= 2 * self.most
        if waiting + new > self.most and not reserved:
            raise Refusal(
                429,
                f"too many requests: {plural(waiting, 'waiting text')}, maximum {self.most}; try again soon",
                retry_after=1,
            )
        self._lanes[sum(job.size > size for size in SIZES)].put(job)

    async def ask(self, job: BatchJob) -> list[Any]:
        """Put a job and wait for its answers; cancelling the wait frees its place in the queue."""
        self.put(job)
        try:
            return await job.answer
        finally:
            job.gone.set()

    def stream(
        self,
        work: StreamWork,
        items: Sequence[Any],
        seconds: float,
        *,
        size: int,
        check: Callable[[], None],
        client: str,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Put a job and iterate over the events that its work emits; see BatchJob for the arguments."""
        events: asyncio.Queue[dict[str, Any] | BaseException | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def emit(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, event)

        def emitting(items: list[Any], stopped: Stopped) -> list[None]:
            work(items, emit, stopped)
            return [None] * len(items)

        job = BatchJob(object(), emitting, items, seconds, size=size, check=check, client=client)
        self.put(job)
        job.answer.add_done_callback(lambda done: events.put_nowait(done.exception()))
        return _emitted(job, events)

    def drain(self) -> None:
        """Accept no more jobs, and wait at most `LAST_SECONDS` until the waiting ones are answered."""
        self._draining = True
        for lane in self._lanes:
            lane.drain()
        end = time.monotonic() + LAST_SECONDS
        for lane in self._lanes:
            lane.join(max(0.0, end - time.monotonic()))


async def _emitted(job: BatchJob, events: asyncio.Queue[Any]) -> AsyncGenerator[dict[str, Any], None]:
    try:
        while isinstance(event := await events.get(), dict):
            yield event
        if event is not None:
            raise event
    finally:
        job.gone.set()


def _padded(item: Any) -> int:
    """The characters that a batch is padded to for this item; 0 for other inputs than texts."""
    text = item.text if isinstance(item, Sentence) else item
    return len(text) if isinstance(text, str) else 0


def _late() -> Refusal:
    return Refusal(503, "time limit reached; send less text, or try again later", retry_after=5)


def _failed() -> Refusal:
    return Refusal(500, "the model failed on this input; see the log of the server")
