"""See what happens inside a model without asking it to return more.

A module calls `record("attention", weights)` at the place where a picture would want to look; it
costs one look-up when nobody watches. Whoever wants to see opens a probe around the call:

    with probe() as seen:
        model.loss(batch)
    seen["attention"]          # every tensor recorded under that name, in order

What is looked at can be changed on its way, too, where a module asks `edited("attention", weights)`:

    with editing(lambda name, weights: torch.zeros_like(weights)):
        model.loss(batch)

Read next: figures/alignment.py, which looks; diagnose/steer.py, which changes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

Edit = Callable[[str, Tensor], Tensor]
"""The name of something and what it is, to what it is to be."""

_seen: ContextVar[dict[str, list[Tensor]] | None] = ContextVar("weft_probe", default=None)
_edit: ContextVar[Edit | None] = ContextVar("weft_edit", default=None)


@contextmanager
def probe() -> Iterator[dict[str, list[Tensor]]]:
    """Collect what is recorded inside the block, a list of tensors for each name."""
    seen: dict[str, list[Tensor]] = defaultdict(list)
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def record(name: str, tensor: Tensor) -> None:
    """Show a tensor to the open probe, if there is one."""
    seen = _seen.get()
    if seen is not None:
        seen[name].append(tensor)


def watching() -> bool:
    """Whether a probe is open: ask before computing what only a picture needs."""
    return not torch.compiler.is_compiling() and _seen.get() is not None


@contextmanager
def editing(change: Edit) -> Iterator[None]:
    """Let `change` have its way with everything that asks for it inside the block, in this thread."""
    token = _edit.set(change)
    try:
        yield
    finally:
        _edit.reset(token)


def edited(name: str, tensor: Tensor) -> Tensor:
    """A tensor as the open edit wants it; as it is where there is none."""
    change = _edit.get()
    return tensor if change is None else change(name, tensor)


def changing() -> bool:
    """Whether an edit is open: ask before taking a slower way that it can reach."""
    return not torch.compiler.is_compiling() and _edit.get() is not None
