"""The minimal GRU, whose gates depend only on the input. Read next: minlstm.py."""

from torch import Tensor

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import light, linear
from weft.probe import record_all, watching


class MinGRU(VectorCell):
    """u = sigmoid(W_u x_t + b_u), h^ = W x_t + b, h_t = u h_{t-1} + (1 - u) h^.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        forget_bias: initial value of b_u; u = 1 keeps the old state.

    u is the paper's 1 - z, as in our GRU. The paper's scan over logarithms requires h^ > 0; this scan does
    not.
    Source: Feng et al. 2024, "Were RNNs all we needed?", section 3.1.

    Example:
        >>> import torch
        >>> cell = MinGRU(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False

    def __init__(self, in_size: int, size: int, *, forget_bias: float = 0.0) -> None:
        super().__init__(in_size, size)
        self.weight_x, self.bias = input_weights(in_size, size, gates=2)
        self.bias.data[:size] = forget_bias

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        u, candidate = linear(x, self.weight_x, self.bias).chunk(2, -1)
        u = u.sigmoid()
        h = u * state[0] + (1 - u) * candidate
        record_all(update_gate=u, candidate=candidate, hidden=h)
        return h, (h,)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps: one matrix product, then gates and state in one kernel."""
        if watching():
            return super().run(x, state, mask)
        y, h = light("mingru", linear(x, self.weight_x, self.bias), state[0], mask=mask)
        return y, (h,)
