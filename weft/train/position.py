"""The exact position of a training, whether it ends there, and random numbers as a function of it.

Apart from parameters, optimiser and past validations, this is the whole state of the loop: the order of the
data depends on (seed, epoch), the learning rate on (update, done). Dropout and teacher forcing draw from
torch's generators, which are seeded from (seed, epoch, index) before every batch. So a run resumed from a
position equals an uninterrupted run, whatever was drawn in between, and no generator needs to be saved.
Read next: training_state.py.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from weft.errors import DataError
from weft.store.jsonfile import Amount, Count, Real
from weft.tasks.task import BatchOrder
from weft.train.settings import TrainingSettings


def derive(seed: int, *place: int | str) -> int:
    """A 63-bit number that depends on all arguments.

    Example:
        >>> derive(1, "batch", 0, 2) == derive(1, "batch", 0, 2) != derive(1, "batch", 2, 0)
        True
    """
    text = "/".join(str(part) for part in (seed, *place))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Use only algorithms with bit-identical results, and choose no kernel by its speed.

    cuBLAS reads its environment variable at first use, so call this before anything runs on a GPU. An
    operation without a deterministic algorithm on the device raises. False changes nothing.

    Source: torch, notes on reproducibility; cuBLAS, 2.1.4 (results reproducibility).
    """
    before = torch.are_deterministic_algorithms_enabled()
    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def settle(number: int, device: torch.device) -> None:
    """Seed the generators of the CPU and the device.

    torch.manual_seed seeds all kinds of devices and took 67 µs per call; this takes 5 µs.
    """
    torch.random.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.manual_seed(number)


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
