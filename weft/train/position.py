"""The exact position of a training, and whether it ends there. Read next: training_state.py.

Apart from parameters, optimiser and past validations, this is the whole state of the loop: the order of the
data depends on (seed, epoch), dropout on (seed, epoch, index), the learning rate on (update, done). So a run
resumed from a position equals an uninterrupted run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.store.jsonfile import Amount, Count, Real
from weft.tasks.task import BatchOrder
from weft.train.settings import TrainingSettings


@dataclass(frozen=True, slots=True)
class Position:
    """After `update` updates: the next batch is number `index` of epoch `epoch`.

    The fields from `total` to `cpu` are sums since the last progress line.
    """

    update: Count = 0
    epoch: Count = 0
    index: Count = 0
    batches: Count = 0  # in this epoch; 0 before the first one is read
    skipped: Count = 0
    seconds: Amount = 0.0  # wall-clock time, including validation and saving
    cpu_seconds: Amount = 0.0  # CPU time, summed over all threads and processes
    tokens: Count = 0  # target tokens read in total
    total: Real = 0.0  # nats
    count: Amount = 0.0  # real targets
    recent_tokens: Count = 0
    wall: Amount = 0.0  # wall-clock seconds of updates only
    cpu: Amount = 0.0  # CPU seconds of updates only
    cycles: Count = 0  # of the learning rate whose last weights are kept

    def done(self, settings: TrainingSettings) -> float:
        """The finished share of the planned training, 0 to 1, by the nearest limit; 0 without limits."""
        return min(1.0, max(self._shares(settings).values(), default=0.0))

    def end(self, settings: TrainingSettings) -> str:
        """The setting that ends training here, or ""."""
        shares = self._shares(settings) if self.update else {}
        return next((name for name, share in shares.items() if share >= 1), "")

    def _shares(self, settings: TrainingSettings) -> dict[str, float]:
        """The finished share of the training by each limit that is set."""
        limits = {
            "max_updates": (self.update, settings.max_updates),
            "max_epochs": (self.epoch + (self.index / max(1, self.batches)), settings.max_epochs),
            "max_tokens": (self.tokens, settings.max_tokens),
            "max_minutes": (self.seconds, 60 * settings.max_minutes),
            "max_cpu_minutes": (self.cpu_seconds, 60 * settings.max_cpu_minutes),
        }
        return {name: part / limit for name, (part, limit) in limits.items() if limit}

    def validates(self, settings: TrainingSettings) -> bool:
        """Whether a validation is due here."""
        if not self.update:
            return settings.validate_start or settings.starts_trained
        if settings.validate_every:
            return self.update > 0 and self.update % settings.validate_every == 0
        return self.epoch > 0 and self.index == 0

    def saves(self, settings: TrainingSettings) -> bool:
        """Whether a save is due here."""
        return self.update > 0 and self.update % settings.save_every == 0

    def logs(self, settings: TrainingSettings) -> bool:
        """Whether a progress line is due here."""
        return self.update > 0 and self.update % settings.log_every == 0

    def after_log(self) -> "Position":
        """The same position with the sums reset for the next progress line."""
        return replace(self, total=0.0, count=0.0, recent_tokens=0, wall=0.0, cpu=0.0)


@dataclass(frozen=True, slots=True)
class BatchGroup:
    """The batches of one update, and where the next one starts."""

    epoch: int
    index: int
    numbers: list[np.ndarray]
    batches: int  # in this epoch
    next_epoch: int
    next_index: int
    made: Mapping[int, Any] = field(default_factory=dict)  # batches made ahead, by their place in the update


def groups(plan: BatchOrder, position: Position, size: int) -> Iterator[BatchGroup]:
    """Yield groups endlessly, starting at a position; the last group of an epoch may be smaller."""
    epoch, index = position.epoch, position.index
    while True:
        batches = plan.epoch(epoch)
        if not len(batches):
            raise DataError(
                "the training data: expected at least one example, got none; see `weft data check`"
            )
        while index < len(batches):
            stop = min(index + size, len(batches))
            over = stop == len(batches)
            after = (epoch + 1, 0) if over else (epoch, stop)
            yield BatchGroup(epoch, index, [batches[i] for i in range(index, stop)], len(batches), *after)
            index = stop
        epoch, index = epoch + 1, 0
