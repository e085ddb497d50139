"""Rows of different lengths inside a kernel, sorted so that the unfinished rows of a step come first.

Read next: compiled.py and reset_before.py, which skip padding this way.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


class Sorted(NamedTuple):
    """Rows in the order of a kernel.

    bounds: [K + 1], slab k holds rows bounds[k] to bounds[k + 1].
    active: [K, T], number of unfinished rows of the slab at step t.
    order: [B], the original index of each row; None if the order is unchanged.
    lengths: [B] in the kernel's order; None if no row is shorter than T.
    """

    bounds: Tensor
    active: Tensor
    order: Tensor | None
    lengths: Tensor | None

    def take(self, tensor: Tensor | None) -> Tensor | None:
        """[B, ..] in the kernel's order."""
        # index_select: its gradient adds whole rows, that of tensor[order] adds number by number
        return tensor if tensor is None or self.order is None else tensor.index_select(0, self.order)

    def give_back(self, tensor: Tensor | None) -> Tensor | None:
        """[B, ..] in the original order."""
        if tensor is None or self.order is None:
            return tensor
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(len(back), device=back.device)
        return tensor.index_select(0, back)

    def mask(self) -> Tensor | None:
        """[B, T] bool in the kernel's order, True = real; None if no row is shorter than T."""
        if self.lengths is None:
            return None
        return torch.arange(self.active.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def real(self) -> Tensor | None:
        """Indices of the real positions in [T * B]; None if all are real."""
        if self.lengths is None:
            return None
        steps = torch.arange(self.active.shape[1], device=self.lengths.device)
        return (steps[:, None] < self.lengths).flatten().nonzero()[:, 0]


def sort(x: Tensor, mask: Tensor | None, slabs: int = 1) -> Sorted:
    """Sort rows by length, longest first, and deal them to the slabs so that each gets all lengths.

    Args:
        x: [B, T, ..].
        mask: [B, T] bool, real positions first, or None.
        slabs: K, the number of slabs.
    """
    rows, steps = x.shape[:2]
    whole = (_kept_whole if type(x) is Tensor else _whole)(rows, steps, slabs)
    lengths = None if mask is None else mask.sum(1)
    if lengths is None or bool((lengths == steps).all()):
        return whole
    bounds, sizes = whole.bounds, whole.bounds.diff().tolist()
    order: Tensor | None = None
    if slabs > 1 or bool((lengths[1:] > lengths[:-1]).any()):  # packed sequences are already sorted
        falling = lengths.argsort(descending=True, stable=True)
        order = torch.cat([falling[slab::slabs] for slab in range(slabs)])
        lengths = lengths[order]
    at = torch.arange(steps, device=lengths.device)
    active = torch.stack([(part[:, None] > at).sum(0) for part in lengths.split(sizes)])
    return Sorted(bounds, active, order, lengths)


def _whole(rows: int, steps: int, slabs: int) -> Sorted:
    """The plan of rows without padding; its tensors are only read."""
    sizes = [len(range(slab, rows, slabs)) for slab in range(slabs)]
    bounds = torch.tensor([0, *sizes], device="cpu").cumsum(0)
    active = torch.tensor(sizes, device="cpu")[:, None].expand(slabs, steps).contiguous()
    return Sorted(bounds, active, None, None)


_kept_whole = lru_cache(512)(_whole)
