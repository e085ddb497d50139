"""Where random numbers come from while a model runs: a generator that the caller opens.

Dropout and teacher forcing draw from it, so that batches which run side by side in several threads each
draw their own numbers, the same ones in whatever order the threads run. Without an open generator torch's
global one serves, as it does on a GPU. Read next: nn/kernels/dropout.py, train/update.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

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
