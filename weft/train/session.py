"""Everything that lives as long as a training: processes, report, signals, worker threads, saving.

Read next: training_state.py, what changes during training; loop.py.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from weft.store import run_directory
from weft.train import seeds
from weft.train.checkpoints import Checkpoints, CheckpointWriter
from weft.train.interrupts import Interrupts
from weft.train.processes import Processes
from weft.train.reporting import Reporter
from weft.train.settings import TrainingSettings
from weft.train.sharding import Shard
from weft.train.trackers import open_report
from weft.train.update import BatchWorkers


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
    at_a_time = (
        1 if settings.compile else settings.workers
    )  # compiled code draws from torch's shared generator
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(seeds.deterministic(settings.deterministic))
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
