"""C8, the gated recurrent unit, with the reset gate before or after the recurrent product."""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.cells.initial import recurrent_weights
from weft.nn.kernels.gru import gru
from weft.nn.kernels.linear import linear
from weft.probe import record, watching
from weft.shapes import check_choice

Reset = Literal["after", "before"]


class GRU(Cell):
    """u, r = sigmoid(W h_{t-1} + W x_t + b), h_t = u h_{t-1} + (1 - u) h^.

    reset = "after" (torch, cuDNN): h^ = tanh(W_x x_t + b_x + r (W_h h_{t-1} + b_h)), at full speed.
    reset = "before" (Cho 2014): h^ = tanh(W_h (r h_{t-1}) + W_x x_t + b), a loop over steps.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        reset: where the reset gate acts.

    The gates are stacked r, u, h^ as in torch.nn.GRU (whose z is our u), with one bias where torch
    has two, but for b_h (`bias_n`).
    Source: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder".

    Example:
        >>> import torch
        >>> cell = GRU(3, 5)
        >>> y, (h,) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape
        torch.Size([2, 7, 5])
    """

    def __init__(self, in_size: int, size: int, *, reset: Reset = "after") -> None:
        super().__init__(in_size, size)
        check_choice("reset", reset, Reset)
        self.reset = reset
        self.weight_x, self.weight_h, self.bias = recurrent_weights(in_size, size, gates=3)
        if reset == "after":
            self.bias_n = nn.Parameter(torch.zeros(size))

    def start(self, like: Tensor) -> tuple[Tensor]:
        """(h,), zeros [B, H]."""
        return (like.new_zeros(like.shape[0], self.size),)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """One step of the equation."""
        (h,) = state
        gates, n_x = linear(x, self.weight_x, self.bias).split([2 * self.size, self.size], -1)
        if self.reset == "after":
            gates_h, n_h = linear(h, self.weight_h).split([2 * self.size, self.size], -1)
            r, u = (gates + gates_h).sigmoid().chunk(2, -1)
            candidate = torch.tanh(n_x + r * (n_h + self.bias_n))
        else:
            r, u = (gates + linear(h, self.weight_h[: 2 * self.size])).sigmoid().chunk(2, -1)
            candidate = torch.tanh(n_x + linear(r * h, self.weight_h[2 * self.size :]))
        h = u * h + (1 - u) * candidate
        if watching():
            record("reset_gate", r)
            record("update_gate", u)
        return h, (h,)

    def forward(
        self, x: Tensor, state: tuple[Tensor], mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor]]:
        """All steps at once, by the kernel where the reset gate acts after the product."""
        if self.reset == "before" or watching():
            return super().forward(x, state, mask)
        y, h = gru(x, state[0], self.weight_x, self.weight_h, self.bias, self.bias_n, mask)
        return y, (h,)
