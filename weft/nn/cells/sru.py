"""The simple recurrent unit, with a forget gate and a highway connection. Read next: ../kernels/light.py."""

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import hold_last, light, linear
from weft.probe import record_all, watching


class SRU(VectorCell):
    """f, r = sigmoid(W x_t + v c_{t-1} + b), c_t = f c_{t-1} + (1 - f) W x_t, h_t = r c_t + (1 - r) x_t.

    Args:
        in_size: D, features of the input.
        size: H, features of the state; if it is not D, the highway carries W_x x_t.
        peephole: include v (the version of 2018); without it (2017) the recurrence is a scan.
        forget_bias: initial value of b_f.

    The state is (h, c); no step reads h. Weights are stacked c^, f, r, and W_x last.
    Source: Lei et al. 2018, "Simple recurrent units for highly parallelizable recurrence", equations 1
    to 4, and version 1 of the same paper (2017), without its activation of c and without their scaled
    initialisation.

    Example:
        >>> import torch
        >>> cell = SRU(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False
    vectors = 2
    keeps_output = True

    def __init__(self, in_size: int, size: int, *, peephole: bool = False, forget_bias: float = 0.0) -> None:
        super().__init__(in_size, size)
        self.weight_x, _ = input_weights(in_size, size, gates=3 if in_size == size else 4)
        self.bias = nn.Parameter(torch.zeros(2 * size))
        self.bias.data[:size] = forget_bias
        self.peephole = peephole
        if peephole:
            self.weight_c = nn.Parameter(torch.zeros(2, size))

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        _, c = state
        energies, past = self._energies(x)
        candidate, f, r = energies.chunk(3, -1)
        if self.peephole:
            f, r = f + self.weight_c[0] * c, r + self.weight_c[1] * c
        f, r = f.sigmoid(), r.sigmoid()
        c = f * c + (1 - f) * candidate
        h = r * c + (1 - r) * past
        record_all(forget_gate=f, output_gate=r, candidate=candidate, cell=c, hidden=h)
        return h, (h, c)

    def run(
        self, x: Tensor, state: tuple[Tensor, Tensor], mask: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """All steps: one matrix product, then gates and state in one kernel."""
        if watching():
            return super().run(x, state, mask)
        energies, past = self._energies(x)
        peep = self.weight_c if self.peephole else None
        h, c = light("sru", energies, state[1], past=past, peep=peep, mask=mask)
        if mask is None:
            return h, (h[:, -1], c)
        h, last = hold_last(h, state[0], mask)
        return h, (last, c)

    def _energies(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """c^ and the energies of f and r, [.., 3 H], and the highway's input."""
        zeros = self.bias.new_zeros(self.size)
        biases = [zeros, self.bias] if len(self.weight_x) == 3 * self.size else [zeros, self.bias, zeros]
        products = linear(x, self.weight_x, torch.cat(biases))
        if len(biases) == 2:
            return products, x
        return products[..., : 3 * self.size], products[..., 3 * self.size :]
