"""Each weight in autocast's dtype, made once a pass, every pass its own.

torch keeps such copies for the whole process, and the end of any autocast block throws them all away. Of
batches that run side by side one would so use, or lose, the copies of another, and a weight that serves at
every step would have its gradients added in bfloat16 now and in float32 then: trainings of one seed differed
in the last bits. On the CPU, where batches run side by side, torch's store is therefore off and products ask
here. On a GPU a process has one pass at a time, and torch's own store serves.
Read next: linear.py; train/devices.py, which opens the block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_copies: ContextVar[dict[tuple[int, bool], tuple[Tensor, Tensor]] | None] = ContextVar(
    "weft_lowered", default=None
)


@contextmanager
def autocast_on_cpu(dtype: torch.dtype = torch.bfloat16) -> Iterator[None]:
    """torch.autocast for one pass on the CPU, with the copies of its weights to itself.

    Example:
        >>> product = torch.nn.Linear(2, 2)
        >>> with autocast_on_cpu():
        ...     lowered(product.weight) is lowered(product.weight), lowered(product.weight).dtype
        (True, torch.bfloat16)
    """
    token = _copies.set({})
    try:
        with torch.autocast("cpu", dtype, cache_enabled=False):
            yield
    finally:
        _copies.reset(token)


def lowered(weight: Tensor) -> Tensor:
    """A parameter as autocast casts it, made at its first use in the open block; anything else as it is.

    Args:
        weight: any tensor. Only float32 leaves that learn are kept, as torch does; those made without a
            graph apart.
    """
    copies = _copies.get()
    if copies is None or not (weight.requires_grad and weight.is_leaf and weight.dtype == torch.float32):
        return weight
    if weight.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return weight
    key = id(weight), torch.is_grad_enabled()
    if key not in copies:
        copies[key] = weight, weight.to(torch.get_autocast_dtype("cpu"))  # the first keeps the id its own
    return copies[key][1]
