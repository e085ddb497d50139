"""What reset_before.py and triton/ share: products, and the treatment of autocast and padding."""

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.kernels.cells.rows import Sorted
from weft.nn.kernels.linear import linear


class Products:
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
