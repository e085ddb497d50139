"""The source of random numbers while a model runs: a generator opened by the caller.

Dropout and teacher forcing draw from it, so that batches in parallel threads draw their own numbers, whatever
the order of the threads. Without an open generator torch's global one is used, as on a GPU. If a batch is
computed in parts, each part draws the numbers of the whole batch and takes its rows.
Read next: nn/kernels/dropout.py, train/update.py.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor

from weft.probe import within


class Rows(NamedTuple):
    """Rows `begin` to `end` (exclusive) of a batch of `of` rows."""

    begin: int
    end: int
    of: int

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return self.end - self.begin == self.of


_rows: ContextVar[Rows | None] = ContextVar("weft_rows", default=None)
_generator: ContextVar[torch.Generator | None] = ContextVar("weft_generator", default=None)


def drawing(generator: torch.Generator | None) -> AbstractContextManager[None]:
    """Draw from a CPU generator in the block, in this thread."""
    return within(_generator, generator)


def open_generator() -> torch.Generator | None:
    """The open generator, or None for torch's global one."""
    return _generator.get()


def part_of_batch(rows: Rows | None) -> AbstractContextManager[None]:
    """Let `for_rows` in the block, in this thread, draw the numbers of the whole batch."""
    return within(_rows, None if rows is None or rows.whole else rows)


def open_rows() -> Rows | None:
    """The rows of the batch being computed; None for all."""
    return _rows.get()


def uniform(shape: Sequence[int], device: torch.device) -> Tensor:
    """Numbers from 0 to 1, drawn where the open generator is, without one on the device itself."""
    own = open_generator()
    return torch.rand(tuple(shape), generator=own, device=device if own is None else own.device).to(device)


def for_rows(draw: Callable[[tuple[int, ...]], Tensor], shape: Sequence[int]) -> Tensor:
    """draw(shape) whose first axis has batch rows; a part of a batch gets the numbers it has in the whole."""
    rows = _rows.get()
    if rows is None or shape[0] % (rows.end - rows.begin):
        return draw(tuple(shape))
    width = shape[0] // (rows.end - rows.begin)
    return draw((rows.of * width, *shape[1:]))[rows.begin * width : rows.end * width]
