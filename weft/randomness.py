"""Where random numbers come from while a model runs: a generator that the caller opens.

Dropout and teacher forcing draw from it, so that batches which run side by side in several threads each
draw their own numbers, the same ones in whatever order the threads run. Without an open generator torch's
global one serves, as it does on a GPU. Where a batch is computed in parts, each part draws what the whole
would draw and takes its rows. Read next: nn/kernels/dropout.py, train/batch.py.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor


class Rows(NamedTuple):
    """Some rows of a batch: from `begin` up to `end`, of `of`."""

    begin: int
    end: int
    of: int

    @property
    def whole(self) -> bool:
        """Whether these are all."""
        return self.end - self.begin == self.of


_rows: ContextVar[Rows | None] = ContextVar("weft_rows", default=None)
_generator: ContextVar[torch.Generator | None] = ContextVar("weft_generator", default=None)


@contextmanager
def drawing(generator: torch.Generator | None) -> Iterator[None]:
    """Let everything inside the block, in this thread, draw from a generator of the CPU.

    Example:
        >>> with drawing(torch.Generator().manual_seed(1)):
        ...     first = torch.rand(2, generator=open_generator())
        >>> first.tolist() == torch.rand(2, generator=torch.Generator().manual_seed(1)).tolist()
        True
    """
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def open_generator() -> torch.Generator | None:
    """The open generator, or None: then torch's own is used."""
    return _generator.get()


@contextmanager
def part_of_batch(rows: Rows | None) -> Iterator[None]:
    """Let what `for_rows` draws inside the block, in this thread, be what the whole batch would draw."""
    token = _rows.set(None if rows is None or rows.whole else rows)
    try:
        yield
    finally:
        _rows.reset(token)


def open_rows() -> Rows | None:
    """Which rows of a batch are computed; None for all."""
    return _rows.get()


def for_rows(draw: Callable[[tuple[int, ...]], Tensor], shape: Sequence[int]) -> Tensor:
    """draw(shape), random numbers whose first axis are the rows of the batch, each W times beside each other.

    In a part of a batch the whole is drawn, so that each example gets the numbers that it gets in the whole;
    what has another first axis is drawn for the part.

    Example:
        >>> draw = lambda shape: torch.rand(shape, generator=torch.Generator().manual_seed(1))
        >>> with part_of_batch(Rows(1, 3, 4)):
        ...     part = for_rows(draw, (2, 5))
        >>> torch.equal(part, draw((4, 5))[1:3])
        True
    """
    rows = _rows.get()
    if rows is None or shape[0] % (rows.end - rows.begin):
        return draw(tuple(shape))
    width = shape[0] // (rows.end - rows.begin)
    return draw((rows.of * width, *shape[1:]))[rows.begin * width : rows.end * width]
