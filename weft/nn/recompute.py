"""Gradient checkpointing: recompute a layer's activations in the backward pass to save memory.

A module calls `recomputed(function, x, ..)` for a layer. Outside of `with recomputing():` this is just
function(x, ..). Inside, only the inputs are kept, and the second pass draws the same random numbers, so the
gradients are the same even with dropout. L layers then keep L inputs and the activations of one layer.
Source: Chen et al. 2016, section 4; uses torch.utils.checkpoint. Read next: nn/transformer.py.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from weft.nn.randomness import Rows, drawing, open_generator, open_rows, part_of_batch
from weft.probe import watching, within

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
