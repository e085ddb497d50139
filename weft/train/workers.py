"""Compute the batches of an update in parallel: two threads with a batch each beat two threads on one batch.

A recurrent step is too small to split (two threads trained an LSTM no faster than one), but the batches of an
accumulated update are independent. Gradients are summed in the order of the batches, so the result does not
depend on the number of threads. Read next: update.py.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


class BatchWorkers:
    """Runs a function over the batches of a group.

    Args:
        wanted: batches in parallel; 0 for the number of threads.
        accumulate: batches per update.
        device: a GPU gets one batch at a time.

    Attributes:
        count: batches in parallel.
    """

    def __init__(self, wanted: int, accumulate: int, device: torch.device) -> None:
        self.threads = torch.get_num_threads()
        most = self.threads if device.type == "cpu" else 1
        self.count = max(1, min(wanted or most, most, accumulate))
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "BatchWorkers":
        if self.count > 1:
            self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="weft-batch")
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results in the order of the items; each thread uses its share of the cores."""
        if self._pool is None:
            yield from map(function, items)
            return
        torch.set_num_threads(self.threads // self.count)
        try:
            yield from self._pool.map(function, items)
        finally:
            torch.set_num_threads(self.threads)
