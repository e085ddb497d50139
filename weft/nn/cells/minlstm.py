"""The minimal LSTM, with two input-only gates that sum to one. Read next: ssru.py."""

from torch import Tensor

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import light, linear, log_odds
from weft.probe import record_all, watching


class MinLSTM(VectorCell):
    """f', i' = sigmoid(W x_t + b), f = f'/(f'+i'), i = i'/(f'+i'), h^ = W x_t + b, h_t = f h_{t-1} + i h^.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        forget_bias: initial value of b_f.

    The gates are stacked f, i, h^. They sum to one, so h does not grow with the length. They are computed
    from the logarithms of f' and i', which may both be too small for the dtype.
    Source: Feng et al. 2024, "Were RNNs all we needed?", section 3.2.

    Example:
        >>> import torch
        >>> cell = MinLSTM(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False

    def __init__(self, in_size: int, size: int, *, forget_bias: float = 1.0) -> None:
        super().__init__(in_size, size)
        self.weight_x, self.bias = input_weights(in_size, size, gates=3)
        self.bias.data[:size] = forget_bias

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        f, i, candidate = linear(x, self.weight_x, self.bias).chunk(3, -1)
        odds = log_odds(f, i)
        f, i = odds.sigmoid(), (-odds).sigmoid()
        h = f * state[0] + i * candidate
        record_all(forget_gate=f, input_gate=i, candidate=candidate, hidden=h)
        return h, (h,)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps: one matrix product, then gates and state in one kernel."""
        if watching():
            return super().run(x, state, mask)
        y, h = light("minlstm", linear(x, self.weight_x, self.bias), state[0], mask=mask)
        return y, (h,)
