"""Copies of the weights in autocast's dtype, made once per pass and never shared between passes.

torch keeps such copies for the whole process and drops all of them when any autocast block ends. A batch
could therefore use, or lose, the copies of another batch that runs at the same time. The gradients of a
weight used at every step were then added sometimes in bfloat16 and sometimes in float32, and two training
runs with the same seed differed in the last bits. On the CPU, where batches run in parallel, torch's own
cache is therefore off and products call `cast_weight`. On a GPU a process runs one pass at a time and uses
torch's cache. Read next: linear.py; ../devices.py, which opens the block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_copies: ContextVar[dict[tuple[int, bool], tuple[Tensor, Tensor]] | None] = ContextVar(
    "weft_autocast", default=None
)


@contextmanager
def autocast_on_cpu(dtype: torch.dtype = torch.bfloat16) -> Iterator[None]:
    """torch.autocast for one pass on the CPU, with its own copies of the weights.

    Example:
        >>> product = torch.nn.Linear(2, 2)
        >>> with autocast_on_cpu():
        ...     cast_weight(product.weight) is cast_weight(product.weight)
        True
    """
    token = _copies.set({})
    try:
        with torch.autocast("cpu", dtype, cache_enabled=False):
            yield
    finally:
        _copies.reset(token)


def cast_weight(weight: Tensor) -> Tensor:
    """A parameter in autocast's dtype, cast at its first use in the open block; anything else unchanged."""
    copies = _copies.get()
    if copies is None or not (weight.requires_grad and weight.is_leaf and weight.dtype == torch.float32):
        return weight
    if weight.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return weight
    key = id(weight), torch.is_grad_enabled()
    if key not in copies:
        # A reference to the weight: its id must not be reused by another tensor.
        copies[key] = weight, weight.to(torch.get_autocast_dtype("cpu"))
    return copies[key][1]
