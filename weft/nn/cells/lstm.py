"""C5, the long short-term memory with a forget gate. Read next: gru.py."""

from torch import Tensor

from weft.nn.cells.cell import Cell
from weft.nn.cells.initial import recurrent_weights
from weft.nn.kernels.linear import linear
from weft.nn.kernels.lstm import lstm
from weft.probe import record, watching


class LSTM(Cell):
    """i, f, o = sigmoid(W h_{t-1} + W x_t + b), c^ = tanh(...), c_t = f c_{t-1} + i c^, h_t = o tanh(c_t).

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        forget_bias: what b_f starts with; 1 keeps the past from the first update on.

    The gates are stacked i, f, c^, o as in torch.nn.LSTM, with one bias where torch has two.
    Source: Hochreiter & Schmidhuber 1997; forget gate: Gers, Schmidhuber & Cummins 2000; its bias:
    Jozefowicz, Zaremba & Sutskever 2015.

    Example:
        >>> import torch
        >>> cell = LSTM(3, 5)
        >>> y, (h, c) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, h.shape
        (torch.Size([2, 7, 5]), torch.Size([2, 5]))
    """

    def __init__(self, in_size: int, size: int, *, forget_bias: float = 1.0) -> None:
        super().__init__(in_size, size)
        self.weight_x, self.weight_h, self.bias = recurrent_weights(in_size, size, gates=4)
        self.bias.data[size : 2 * size] = forget_bias

    def start(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """(h, c), zeros [B, H]."""
        zeros = like.new_zeros(like.shape[0], self.size)
        return zeros, zeros

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One step of the equation."""
        h, c = state
        energy = linear(x, self.weight_x, self.bias) + linear(h, self.weight_h)
        i, f, candidate, o = energy.chunk(4, -1)
        i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
        c = f * c + i * candidate.tanh()
        h = o * c.tanh()
        if watching():
            for name, gate in (("input_gate", i), ("forget_gate", f), ("output_gate", o), ("cell", c)):
                record(name, gate)
        return h, (h, c)

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor], mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """All steps at once, by the kernel; a probe sees the gates, step by step."""
        if watching():
            return super().forward(x, state, mask)
        y, h, c = lstm(x, *state, self.weight_x, self.weight_h, self.bias, mask)
        return y, (h, c)
