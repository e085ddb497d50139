"""The batches of coming updates, made in a thread while a GPU computes.

An update on a GPU spends most of its time waiting for the card, and a batch is made on the CPU meanwhile. On
a CPU the thread would take a core from the model, so batches are made when they are due. A batch depends on
its place alone (../nn/randomness.py), so it is the same either way, also where a training resumes.
Read next: update.py and captured.py, which take the batches; loop.py.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from queue import Empty, Queue
from typing import Any

import torch

from weft.nn.randomness import drawing
from weft.tasks.task import Training
from weft.train.position import BatchGroup, derive
from weft.train.processes import Share

DEVICES = ("cuda",)
"""Where batches are made ahead; tests add the CPU."""

AHEAD = 2
"""Updates whose batches wait, at most."""

Shares = Callable[[BatchGroup], list[Share]]


def made_batch(training: Training, seed: int, group: BatchGroup, share: Share) -> Any:
    """A batch, with random numbers that depend on its place alone."""
    place = group.epoch, group.index + share.offset
    with drawing(torch.Generator().manual_seed(derive(seed, "examples", *place))):
        return training.collate(share.numbers)


def coming(
    groups: Iterator[BatchGroup], shares: Shares, training: Training, seed: int, device: torch.device
) -> AbstractContextManager[Iterator[BatchGroup]]:
    """The groups, from a `Prefetcher` where the device is one for which that pays."""
    if device.type not in DEVICES:
        return nullcontext(groups)
    return Prefetcher(groups, shares, training, seed)


class Prefetcher:
    """The groups of a training, with the batches of this process made in a thread.

    A batch that cannot be made is left to the caller, who makes it when it is due and gets the error there.
    An error of the order of the data is raised where the group would have come.
    """

    def __init__(self, groups: Iterator[BatchGroup], shares: Shares, training: Training, seed: int) -> None:
        self._groups, self._shares, self._training, self._seed = groups, shares, training, seed
        self._queue: Queue[BatchGroup | BaseException] = Queue(AHEAD)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-prefetch", daemon=True)

    def __enter__(self) -> "Prefetcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        while self._thread.is_alive():
            with suppress(Empty):  # it may wait for room
                self._queue.get_nowait()
            self._thread.join(0.01)

    def __iter__(self) -> Iterator[BatchGroup]:
        return self

    def __next__(self) -> BatchGroup:
        while True:
            over = not self._thread.is_alive()  # then nothing more will come
            try:
                found = self._queue.get(timeout=0 if over else 1)
                break
            except Empty:
                if over:
                    raise StopIteration from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _run(self) -> None:
        try:
            for group in self._groups:
                self._queue.put(replace(group, made=self._made(group)))
                if self._over.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  raised again by __next__
            self._queue.put(error)

    def _made(self, group: BatchGroup) -> dict[int, Any]:
        found: dict[int, Any] = {}
        with suppress(Exception):
            for share in self._shares(group):
                if self._over.is_set():
                    break
                found[share.offset] = made_batch(self._training, self._seed, group, share)
        return found
