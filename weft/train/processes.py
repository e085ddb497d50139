"""Several processes train one model: each takes a share of an update's batches, and gradients are summed.

Started by torchrun or by `weft train RECIPE --processes N`; alone it does nothing. What is summed
is the gradient of the summed loss; the division by the count of all real targets comes afterwards, so the
number of processes changes nothing but the order of a sum. The first process reads, validates, saves and
reports. It tells the others whatever it decides by a clock or a signal, so all stand at the same update.
Nothing is sent as pickle: numbers as tensors, the rest as JSON. Read next: update.py, course.py.
"""

import datetime
import json
import os
import time
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn

from weft.errors import ConfigError, WeftError
from weft.train.position import Group

PATIENCE = datetime.timedelta(hours=12)  # the others wait so long while the first one reads or validates
BUCKET = 2**23  # numbers that are sent at once


class Lost(WeftError):
    """Another process of several has ended."""


class Share(NamedTuple):
    """A process's part of one batch."""

    offset: int
    """Of the batch in its group."""

    numbers: Any
    """Of its examples."""

    counts: bool = True
    """False where the process had none, and passes over another's for company: sharded parameters are
    gathered by all processes together, pass by pass."""


def fresh(store: distributed.Store, rank: int, count: int) -> distributed.Store:
    """The part of a store that belongs to this start of all processes alone.

    torchrun's store outlives the processes that it replaces: a new one could read the address of a dead one
    there, which is refused, or never answers. Hosts count their restarts apart, so the count is no name. The
    first process therefore gives each other one a name of its own making, under a key that this one made:
    nobody who is dead can have answered to it.

    Args:
        store: what torchrun gave, the same for all.
        rank: of this process.
        count: of all.

    Raises:
        RuntimeError: not all have come within 12 hours.
    """
    own = f"weft/{uuid.uuid4().hex}"
    if rank:
        store.set(f"weft/asks/{rank}", own)
        name = store.get(f"{own}/name").decode()
        store.set(f"{name}/has/{rank}", "")
        return distributed.PrefixStore(name, store)
    missing = list(range(1, count))
    until = time.monotonic() + PATIENCE.total_seconds()
    while missing:
        for other in missing:
            if store.check([f"weft/asks/{other}"]):  # perhaps a dead one still, so it is asked again
                store.set(store.get(f"weft/asks/{other}").decode() + "/name", own)
        time.sleep(0.02)
        missing = [other for other in missing if not store.check([f"{own}/has/{other}"])]
        if time.monotonic() > until:
            raise RuntimeError(f"{len(missing)} processes have not come")
    return distributed.PrefixStore(own, store)


class Processes:
    """This process among those that train.

    Args:
        device: what this one computes on; a GPU gets NCCL, a CPU gloo.

    Attributes:
        rank: 0 for the first.
        count: processes in all.

    Raises:
        ConfigError: they cannot find each other.
    """

    def __init__(self, device: torch.device) -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0")) if self.count > 1 else 0
        self.device = device
        if self.count > 1 and not distributed.is_initialized():
            try:
                store, rank, count = next(distributed.rendezvous("env://", timeout=PATIENCE))
                distributed.init_process_group(
                    "nccl" if device.type == "cuda" else "gloo",
                    store=fresh(store, rank, count),
                    rank=rank,
                    world_size=count,
                    timeout=PATIENCE,
                    device_id=device if device.type == "cuda" else None,
                )
            except (RuntimeError, ValueError) as error:
                raise ConfigError(
                    f"process {self.rank} of {self.count} does not find the others ({error}); start them "
                    "with torchrun or --processes"
                ) from error

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.count > 1 and distributed.is_initialized():
            distributed.destroy_process_group()
        lost = isinstance(error, distributed.DistError) or "gloo" in str(error)
        if self.count > 1 and isinstance(error, RuntimeError) and lost:
            raise Lost(
                f"process {self.rank} of {self.count}: another one has ended "
                f"({str(error).splitlines()[0][:120]}); the same command resumes from the newest checkpoint"
            ) from error

    @property
    def first(self) -> bool:
        """Whether this one reads, validates, saves and reports."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all are here."""
        if self.count > 1:
            distributed.all_reduce(torch.zeros(1, device=self.device))

    def told(self, value: Any = None) -> Any:
        """The first process's value, which must be JSON, in all of them; numbers that are not finite too."""
        if self.count == 1:
            return value
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        size = torch.tensor([len(text) if self.first else 0], device=self.device)
        distributed.broadcast(size, 0)
        sent = text.to(self.device) if self.first else text.new_empty(int(size), device=self.device)
        distributed.broadcast(sent, 0)
        return json.loads(bytes(sent.cpu().tolist()))

    def part(self, group: Group, accumulate: int, *, even: bool = False) -> list[Share]:
        """What of a group's batches is this process's.

        Whole batches where an update has at least one for each process, else its rows of every batch.

        Args:
            group: of an update.
            accumulate: batches an update.
            even: every process has as many; some of them do not count.
        """
        if accumulate >= self.count:
            mine = [Share(n, group.numbers[n]) for n in range(self.rank, len(group.numbers), self.count)]
            if even and len(mine) < -(-len(group.numbers) // self.count):
                mine.append(Share(0, group.numbers[0], counts=False))
            return mine
        rows = [
            Share(offset, numbers[self.rank :: self.count]) for offset, numbers in enumerate(group.numbers)
        ]
        alone = [Share(offset, numbers[:1], counts=False) for offset, numbers in enumerate(group.numbers)]
        mine = [share if len(share.numbers) else one for share, one in zip(rows, alone, strict=True)]
        return mine if even else [share for share in mine if share.counts]

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """The sums over all processes, in float64."""
        if self.count == 1:
            return list(numbers)
        total = torch.tensor(list(numbers), dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        found: list[float] = total.tolist()
        return found

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum the gradients of all processes in place; a parameter that none of them reached keeps None."""
        if self.count == 1:
            return
        reached = self.sum([0.0 if one.grad is None else 1.0 for one in parameters])
        chosen = [one for one, times in zip(parameters, reached, strict=True) if times]
        for one in chosen:
            if one.grad is None:
                one.grad = torch.zeros_like(one)
        bucket: list[Tensor] = []
        for place, one in enumerate(chosen):
            assert one.grad is not None
            bucket.append(one.grad)
            full = sum(gradient.numel() for gradient in bucket) >= BUCKET
            last = place + 1 == len(chosen)
            if full or last or chosen[place + 1].dtype != one.dtype:
                self._add(bucket)
                bucket = []

    def _add(self, gradients: list[Tensor]) -> None:
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat)
        pieces = flat.split([gradient.numel() for gradient in gradients])
        for gradient, piece in zip(gradients, pieces, strict=True):
            gradient.copy_(piece.view_as(gradient))
