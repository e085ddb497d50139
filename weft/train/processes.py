"""Train one model with several processes: each computes a share of every update, and gradients are summed.

The processes are started by torchrun or by `weft train RECIPE --processes N`; with one process nothing here
has an effect. The sum is the gradient of the summed loss, and the division by the number of all real targets
comes afterwards, so the number of processes only changes the order of a sum. The first process reads,
validates, saves and reports. It shares every decision that depends on a clock or a signal, so all processes
stay at the same update. Nothing is sent as pickle: numbers are sent as tensors, the rest as JSON. Read next:
update.py, training_state.py.
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
from weft.train.position import BatchGroup

PATIENCE = datetime.timedelta(hours=12)  # how long the others wait while the first one reads or validates
BUCKET = 2**23  # numbers per message


class Lost(WeftError):
    """Another process has ended."""


class Share(NamedTuple):
    """This process's part of one batch."""

    offset: int
    """Index of the batch in its group."""

    numbers: Any
    """Numbers of the examples."""

    counts: bool = True
    """False if the process has no share and computes another's without using the result: sharded parameters
    are gathered by all processes together in every pass."""


def fresh(store: distributed.Store, rank: int, count: int) -> distributed.Store:
    """A part of the store that only the current processes use.

    torchrun's store outlives the processes that it restarts: a new process could read the address of a dead
    one there and wait for it forever. Hosts count their restarts separately, so that count cannot serve as a
    name. Instead, the first process sends a random name to each other process, under a key that this process
    made up: a dead process cannot have answered this key.
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
            if store.check(
                [f"weft/asks/{other}"]
            ):  # it may be the key of a dead process, so answer repeatedly
                store.set(store.get(f"weft/asks/{other}").decode() + "/name", own)
        time.sleep(0.02)
        missing = [other for other in missing if not store.check([f"{own}/has/{other}"])]
        if time.monotonic() > until:
            raise RuntimeError(f"{len(missing)} processes did not start")
    return distributed.PrefixStore(own, store)


class Processes:
    """This process as one of those that train; on a GPU they use NCCL, on a CPU gloo."""

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
                    f"process {self.rank} of {self.count} cannot connect to the others ({error}); start them "
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
                f"process {self.rank} of {self.count}: another process has ended "
                f"({str(error).splitlines()[0][:120]}); the same command resumes from the newest checkpoint"
            ) from error

    @property
    def first(self) -> bool:
        """Whether this is the process that reads, validates, saves and reports."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.count > 1:
            distributed.all_reduce(torch.zeros(1, device=self.device))

    def told(self, value: Any = None) -> Any:
        """Send the first process's value to all processes; it must be JSON, where NaN is allowed."""
        if self.count == 1:
            return value
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        size = torch.tensor([len(text) if self.first else 0], device=self.device)
        distributed.broadcast(size, 0)
        sent = text.to(self.device) if self.first else text.new_empty(int(size), device=self.device)
        distributed.broadcast(sent, 0)
        return json.loads(bytes(sent.cpu().tolist()))

    def part(self, group: BatchGroup, accumulate: int, *, even: bool = False) -> list[Share]:
        """This process's share of a group.

        Whole batches if an update has at least one per process, else some rows of every batch.
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
        """Sum numbers over all processes, in float64."""
        if self.count == 1:
            return list(numbers)
        total = torch.tensor(list(numbers), dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        found: list[float] = total.tolist()
        return found

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum the gradients of all processes in place; None stays if no process has a gradient."""
        if self.count == 1:
            return
        reached = self.sum([0.0 if one.grad is None else 1.0 for one in parameters])
        chosen = [one for one, times in zip(parameters, reached, strict=True) if times]
        for one in chosen:
            if one.grad is None:
                one.grad = torch.zeros_like(one)
            elif one.grad.is_sparse:
                one.grad = one.grad.to_dense()
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
