"""The source of random numbers while a model runs: a generator opened by the caller.

Dropout and teacher forcing draw from it, so that batches in parallel threads draw their own numbers, whatever
the order of the threads. Without an open generator torch's global one is used, as on a GPU. If a batch is
computed in parts, each part draws the numbers of the whole batch and takes its rows.

Gradient checkpointing recomputes a layer's activations in the backward pass to save memory, with the same
random numbers, so the gradients are the same even with dropout. A module calls `recomputed(function, x, ..)`
for a layer; inside of `with recomputing():` only its inputs are kept. L layers then keep L inputs and the
activations of one layer. Source: Chen et al. 2016, section 4; uses torch.utils.checkpoint.
Read next: nn/kernels/dropout.py, nn/transformer.py, train/update.py.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from weft.probe import watching, within


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


_wanted: ContextVar[bool] = ContextVar("weft_recomputing", default=False)


def recomputing(wanted: bool = True) -> AbstractContextManager[None]:
    """Let layers in the block keep only their inputs; False keeps all activations."""
    return within(_wanted, wanted)


def recomputes() -> bool:
    """Whether `recomputed` keeps only inputs now, so the code that it calls will run a second time."""
    return _wanted.get()


def recomputed(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments); inside `recomputing` its activations are not kept."""
    if not _wanted.get() or not torch.is_grad_enabled() or watching():
        return function(*arguments)
    own = open_generator()
    state, rows = None if own is None else own.get_state(), open_rows()

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return recomputing(False), _replayed(state, rows)

    return checkpoint(function, *arguments, use_reentrant=False, context_fn=contexts)


@contextmanager
def _replayed(state: torch.Tensor | None, rows: Rows | None) -> Iterator[None]:
    # Use a separate generator, because the caller of backward may be drawing from the open one.
    own = None if state is None else torch.Generator().set_state(state)
    with drawing(own), part_of_batch(rows), recomputing(False):
        yield
