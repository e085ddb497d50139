"""C1, the plain recurrent network of Elman (1990). Read next: lstm.py."""

from typing import Literal

import torch
from torch import Tensor

from weft.nn.cells.cell import Cell
from weft.nn.cells.initial import recurrent_weights
from weft.nn.kernels.elman import elman
from weft.nn.kernels.linear import linear
from weft.shapes import check_choice

Activation = Literal["tanh", "relu"]


class Elman(Cell):
    """h_t = g(W_xh x_t + W_hh h_{t-1} + b_h), y_t = h_t.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        activation: g, "tanh" or "relu".

    Source: Elman 1990, "Finding structure in time".

    Example:
        >>> import torch
        >>> cell = Elman(3, 5)
        >>> y, state = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape
        torch.Size([2, 7, 5])
    """

    def __init__(self, in_size: int, size: int, *, activation: Activation = "tanh") -> None:
        super().__init__(in_size, size)
        check_choice("activation", activation, Activation)
        self.activation = activation
        self.weight_x, self.weight_h, self.bias = recurrent_weights(in_size, size, gates=1)

    def start(self, like: Tensor) -> tuple[Tensor]:
        """(h,), zeros [B, H]."""
        return (like.new_zeros(like.shape[0], self.size),)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """One step of the equation."""
        energy = linear(x, self.weight_x, self.bias) + linear(state[0], self.weight_h)
        h = torch.tanh(energy) if self.activation == "tanh" else torch.relu(energy)
        return h, (h,)

    def forward(
        self, x: Tensor, state: tuple[Tensor], mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor]]:
        """All steps at once, by the kernel."""
        y, h = elman(x, state[0], self.weight_x, self.weight_h, self.bias, self.activation, mask)
        return y, (h,)
