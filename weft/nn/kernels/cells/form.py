"""What the ways of recurrent layers share: equations' forms, a layer's arguments, sorted rows, products.

Rows of different lengths are sorted inside a kernel, so that the unfinished rows of a step come first.
Read next: steps.py, the plain loop; compiled.py.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.kernels.linear import linear


class Recurrence(NamedTuple):
    """The equation to compute.

    kind: elman, lstm, coupled, gru (reset gate after the product) or gru_before.
    name: activation of h (elman) or of the candidate.
    peephole: whether the LSTM's gates also read their own unit's c.
    """

    kind: str
    name: str = "tanh"
    peephole: bool = False


class Norms(NamedTuple):
    """Gains of a layer-normalised cell.

    gates: gains of the gates' W_h h, [G H]; for gru_before those of r and u, [2 H].
    other: [H], gains of the LSTM's c, or of the candidate's product in gru_before; None for gru.
    """

    gates: Tensor
    other: Tensor | None = None


ACTIVATIONS = {"elman": "tanh", "relu": "relu"} | {
    f"elman_{name}": name for name in ("sigmoid", "leaky_relu", "elu", "modrelu")
}

FORMS = {
    "lstm": Recurrence("lstm"),
    "peephole": Recurrence("lstm", peephole=True),
    "coupled": Recurrence("coupled"),
    "gru": Recurrence("gru"),
    "gru_before": Recurrence("gru_before"),
} | {cell: Recurrence("elman", name) for cell, name in ACTIVATIONS.items()}
"""The form of each cell by its name in the kernels."""

Result = tuple[Tensor, Tensor, Tensor | None]  # y [B, T, H], zero at padding; h, c [B, H]


class LayerInput(NamedTuple):
    """The arguments of a layer.

    x: [B, T, D]; h, c: [B, H] the initial state, c only for lstm, peephole and coupled.
    weight_x: [G H, D]; weight_h: [G H, H]; bias: [G H].
    extra: peephole [3, H], gru [H] (the candidate's inner bias).
    mask: [B, T] bool, real positions first, or None.
    """

    x: Tensor
    h: Tensor
    c: Tensor | None
    weight_x: Tensor
    weight_h: Tensor
    bias: Tensor
    extra: Tensor | None
    mask: Tensor | None

    def tensors(self) -> list[Tensor]:
        """All tensors except the mask."""
        return [tensor for tensor in self[:-1] if tensor is not None]


Operation = Callable[[LayerInput], Result]


class Gates(NamedTuple):
    """The weights of a cell's step, as native/recurrent.h has it."""

    kind: str  # ssru, lstm or gru (reset after the product)
    x: Tensor  # [G H, D], of all gates
    bias: Tensor  # [G H]
    h: Tensor | None = None  # [G H, H]; None for a cell that multiplies its state by no matrix
    bias_n: Tensor | None = None  # [H], of a GRU's W_h h


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


class MatrixProducts:
    """The products of a layer, in autocast's dtype under autocast.

    Args:
        rows: the order and lengths of the rows.
        low: autocast's dtype, or None.
        wide: the dtype of states and results.
    """

    def __init__(self, rows: Sorted, low: torch.dtype | None, wide: torch.dtype) -> None:
        self.counts = rows.active[0].tolist()
        self.rows = rows
        self.low = low
        self.wide = wide

    def cast(self, tensor: Tensor) -> Tensor:
        """The tensor in autocast's dtype; unchanged without autocast."""
        return tensor if self.low is None else tensor.to(self.low)

    def inputs(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """W x + b for all steps, [T, B, G H]."""
        return linear(self.cast(x), self.cast(weight), self.cast(bias)).to(self.wide)

    def times(self, a: Tensor, weight: Tensor) -> Tensor:
        """a W^T, for W already cast by `cast`."""
        return F.linear(self.cast(a), weight).to(self.wide)

    def states(self, before: Tensor, steps: int) -> Tensor:
        """Buffer [T + 1, B, H] that starts with the state before; zeros where steps may be skipped."""
        make = before.new_empty if self.rows.lengths is None else before.new_zeros
        states = make(steps + 1, *before.shape)
        states[0] = before
        return states

    def last(self, states: Tensor) -> Tensor:
        """Each row's last state."""
        if self.rows.lengths is None:
            return states[-1].clone()
        return states[self.rows.lengths, torch.arange(states.shape[1], device=states.device)]

    def clear(self, *grads: Tensor) -> None:
        """Set gradients to zero at padding, in place."""
        if self.rows.lengths is not None:
            at = torch.arange(grads[0].shape[0], device=grads[0].device)
            padding = (at[:, None] >= self.rows.lengths)[..., None]
            for grad in grads:
                grad.masked_fill_(padding, 0.0)

    def gradient(self, d: Tensor, a: Tensor) -> Tensor:
        """Sum over steps and rows of d a^T."""
        d, a = self.cast(d.flatten(0, 1)), self.cast(a.flatten(0, 1))
        return linear(d.mT, a.mT).to(self.wide)

    def back(self, d: Tensor, weight: Tensor) -> Tensor:
        """d W for all steps."""
        return linear(self.cast(d), self.cast(weight).mT).to(self.wide)
