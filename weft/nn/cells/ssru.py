"""The simpler simple recurrent unit, with one gate and a ReLU output. Read next: sru.py."""

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import Gates, light, linear
from weft.probe import record_all, watching


class SSRU(VectorCell):
    """f = sigmoid(W_f x_t + b_f), c_t = f c_{t-1} + (1 - f) W x_t, h_t = relu(c_t).

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        forget_bias: initial value of b_f.

    The state is (c,); the output is relu(c). Weights are stacked f, c^.
    Source: Kim et al. 2019, "From research to production and back: ludicrously fast neural machine
    translation", section 3.

    Example:
        >>> import torch
        >>> cell = SSRU(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False

    def __init__(self, in_size: int, size: int, *, forget_bias: float = 0.0) -> None:
        super().__init__(in_size, size)
        self.weight_x, _ = input_weights(in_size, size, gates=2)
        self.bias = nn.Parameter(torch.full((size,), forget_bias))

    def shown(self, state: tuple[Tensor]) -> Tensor:
        """relu(c)."""
        return torch.relu(state[0])

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        f, candidate = self._energies(x).chunk(2, -1)
        f = f.sigmoid()
        c = f * state[0] + (1 - f) * candidate
        h = torch.relu(c)
        record_all(forget_gate=f, candidate=candidate, cell=c, hidden=h)
        return h, (c,)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps: one matrix product, then gates and state in one kernel."""
        if watching():
            return super().run(x, state, mask)
        y, c = light("ssru", self._energies(x), state[0], mask=mask)
        return y, (c,)

    def _energies(self, x: Tensor) -> Tensor:
        """Energies of f and the candidate, [.., 2 H]."""
        gates = self.step_weights()
        return linear(x, gates.x, gates.bias)

    def step_weights(self) -> Gates:
        return Gates("ssru", self.weight_x, torch.cat([self.bias, torch.zeros_like(self.bias)]))
