"""See what happens inside a model without asking it to return more.

A module calls `record("attention", weights)` at the place where a picture would want to look; it
costs one look-up when nobody watches. Whoever wants to see opens a probe around the call:

    with probe() as seen:
        model.loss(batch)
    seen["attention"]          # every tensor recorded under that name, in order

Read next: inspect/alignment.py.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_seen: ContextVar[dict[str, list[Tensor]] | None] = ContextVar("weft_probe", default=None)


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
    return _seen.get() is not None
