"""Everything that lives as long as a training: processes, report, signals, worker threads, saving.

SIGTERM, SIGUSR1 and Ctrl-C finish the update, save, and say how to resume; a second signal exits at once.
During an update a signal is only recorded, and training stops at the next `at_once` block. Long phases that
can be cut without loss (reading data; validation, which follows a save) run inside `at_once`, where a signal
raises an exception. Exit codes: 130 for Ctrl-C, 143 for SIGTERM, 138 for SIGUSR1, by which a scheduler
announces the end of a job (deploy/slurm.sh).
Read next: training_state.py, what changes during training; loop.py.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, MappingProxyType, TracebackType
from typing import Any

import torch

from weft.store import run_directory
from weft.train.checkpoints import Checkpoints, CheckpointWriter
from weft.train.position import deterministic
from weft.train.processes import Processes
from weft.train.reporting import Reporter
from weft.train.settings import TrainingSettings
from weft.train.sharding import Shard
from weft.train.trackers import open_report
from weft.train.update import BatchWorkers

NOTICE = getattr(signal, "SIGUSR1", None)  # not on Windows
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([NOTICE] if NOTICE else []))


class Interrupted(Exception):
    """A signal arrived in a block that may be interrupted."""


class Interrupts:
    """Handles signals inside its block; outside the main thread it does nothing.

    Of several processes (`together`) a signal takes effect when `agree` is called with it. `asked` is the
    number of the signal received, 0 if none.
    """

    def __init__(self, *, together: bool = False) -> None:
        self._together = together
        self._agreed = 0
        self.asked = 0
        self._cut = False
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects: 128 plus the signal."""
        return 128 + self.asked if self.asked else 0

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
        """A block that a signal interrupts, also one received before the block."""
        self._cut = not self._together
        try:
            if self._agreed if self._together else self.asked:
                raise Interrupted
            yield
        finally:
            self._cut = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block that a signal interrupts in one of several processes, which must then tell the others."""
        before, self._cut = self._cut, True
        try:
            if self.asked:
                raise Interrupted
            yield
        finally:
            self._cut = before

    def agree(self, number: int) -> None:
        """Record a signal that all processes know (0 for none); the next `at_once` block stops."""
        self._agreed = number
        self.asked = self.asked or number

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == NOTICE:
            return  # Slurm and a launcher may both pass it on
        if self.asked:
            _leave(number)
        self.asked = number
        if self._cut:
            raise Interrupted


def _leave(number: int) -> None:
    # Not sys.exit, which would wait for whatever the first signal is waiting for. Saves are atomic, so
    # nothing is lost.
    if sys.stderr.isatty():
        os.write(2, b"\x1b[?25h\n")  # a progress bar hides the cursor
    os._exit(128 + number)


@dataclass(frozen=True)
class Session:
    """The resources of one training; `session` opens and closes them.

    Only the report of the first process shows anything.
    """

    run: Path
    settings: TrainingSettings
    device: torch.device
    processes: Processes
    report: Reporter
    interrupts: Interrupts
    workers: BatchWorkers
    saving: CheckpointWriter

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of the run."""
        return self.saving.checkpoints

    @property
    def sharded(self) -> bool:
        """Whether each process holds only part of the parameters."""
        return self.settings.sharding == "full" and self.processes.count > 1

    @property
    def part(self) -> Shard:
        """The part of a checkpoint that this process writes."""
        return Shard(self.processes.rank, self.processes.count) if self.sharded else Shard()

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """The first process runs the body before the others do, so that they find its files."""
        if not self.processes.first:
            self.processes.wait()
        yield
        self.processes.wait()
        if self.processes.first:
            self.processes.wait()


@contextmanager
def session(
    run: Path,
    settings: TrainingSettings,
    device: torch.device,
    report: Reporter | None,
    recipe: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Session]:
    """Open the resources of a training, and close them in reverse order."""
    # compiled code draws from torch's shared generator
    at_a_time = 1 if settings.compile else settings.workers
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(deterministic(settings.deterministic))
        processes = enter(Processes(device))
        if processes.first:
            enter(run_directory.lock(run))
            reporting = enter(report or open_report(run, settings.trackers, recipe))
        else:
            reporting = enter(Reporter())
        interrupts = enter(Interrupts(together=processes.count > 1))
        workers = enter(BatchWorkers(at_a_time, -(-settings.accumulate // processes.count), device))
        checkpoints = Checkpoints(run, reporting.warned)
        background = settings.save_in_background
        saving = enter(CheckpointWriter(checkpoints, background=background, first=processes.first))
        yield Session(run, settings, device, processes, reporting, interrupts, workers, saving)
