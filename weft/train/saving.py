"""Write checkpoints in the background: training waits for a copy in memory, not for the disk.

One checkpoint is written at a time: the next save, the index entry of a validation and the end of training
wait for it, and raise its errors. Read next: checkpoints.py, training_state.py.
"""

import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType

from weft.train.checkpoints import Checkpoints, Snapshot
from weft.wording import plural


class CheckpointWriter:
    """Writes the checkpoints of a run.

    Args:
        checkpoints: checkpoints of the run.
        background: write in a thread while training continues.
        first: whether this is the first process, which removes old checkpoints.

    Attributes:
        checkpoints: checkpoints of the run.
        held_seconds: time that training waited for saving.
        written: number of checkpoints so far.
    """

    def __init__(self, checkpoints: Checkpoints, *, background: bool, first: bool) -> None:
        self.checkpoints = checkpoints
        self._background = background
        self._first = first
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._wanted: list[int] = []
        self.held_seconds = 0.0
        self.written = 0

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.join()
        if error is None:
            self.wait()

    def save(self, copy: Callable[[], Snapshot], wanted: Iterable[int]) -> None:
        """Write a checkpoint; afterwards, remove older ones that are not wanted."""
        self.wait()
        self._wanted = list(wanted)
        begun = time.perf_counter()
        snapshot = copy()
        if self._background:
            thread = threading.Thread(target=self._write, args=(snapshot,), name="weft-saving")
            try:
                thread.start()
            except RuntimeError:  # the system cannot start another thread: write in this one
                pass
            else:
                self._thread = thread
                self.held_seconds += time.perf_counter() - begun
                return
        self.checkpoints.write(snapshot)
        self._finished(begun)

    def wait(self) -> None:
        """Wait until the last checkpoint is written."""
        if self._thread is None:
            return
        begun = time.perf_counter()
        self._thread.join()
        self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self._finished(begun)

    def sentence(self, seconds: float) -> str:
        """A sentence about how long training waited for checkpoints, out of this many seconds."""
        share = 100 * self.held_seconds / max(seconds, 1e-9)
        return (
            f"{plural(self.written, 'checkpoint')} written; training waited "
            f"{self.held_seconds:.2f} s for saving ({share:.2f} % of its time)"
        )

    def _finished(self, begun: float) -> None:
        self.written += 1
        if self._first:
            self.checkpoints.keep(self._wanted)
        self.held_seconds += time.perf_counter() - begun

    def _write(self, snapshot: Snapshot) -> None:
        try:
            self.checkpoints.write(snapshot)
        except BaseException as error:  # noqa: BLE001  raised again in the training thread
            self._error = error
