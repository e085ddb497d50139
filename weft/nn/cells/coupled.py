"""The LSTM with coupled gates, in which the input gate is 1 - f. Read next: gru.py."""

from torch import Tensor, nn

from weft.nn.cells.cell import Candidate, Gated
from weft.nn.cells.initial import GateNorm
from weft.nn.ops import equations, linear
from weft.probe import record_all, watching


class Coupled(Gated):
    """f, o = sigmoid(W h_{t-1} + W x_t + b), c_t = f c_{t-1} + (1 - f) c^, h_t = o tanh(c_t).

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        forget_bias: initial value of b_f.
        candidate: the activation of c^.
        normalised: layer normalisation of each gate's W x and W h, and of c before its tanh.

    The gates are stacked f, c^, o: three instead of the LSTM's four.

    Raises:
        ConfigError: an unknown candidate.

    Source: Greff et al. 2017, "LSTM: a search space odyssey", variant CIFG.

    Example:
        >>> import torch
        >>> cell = Coupled(3, 5)
        >>> y, (h, c) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape
        torch.Size([2, 7, 5])
    """

    vectors = 2

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        forget_bias: float = 1.0,
        candidate: Candidate = "tanh",
        normalised: bool = False,
    ) -> None:
        super().__init__(in_size, size, gates=3, candidate=candidate, normalised=normalised)
        self.bias.data[:size] = forget_bias
        if normalised:
            self.norm_x, self.norm_h = GateNorm(size, gates=3), GateNorm(size, gates=3)
        self.norm_c = GateNorm(size) if normalised else nn.Identity()

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state
        if self.normalised:
            energy = self.norm_x(linear(x, self.weight_x)) + self.norm_h(linear(h, self.weight_h)) + self.bias
        else:
            energy = linear(x, self.weight_x, self.bias) + linear(h, self.weight_h)
        new = equations.coupled(*energy.chunk(3, -1), c, activation=self.candidate, norm=self.norm_c)
        if watching():
            record_all(**new._asdict())
        return new.hidden, (new.hidden, new.cell)

    def kernel(self) -> str:
        return "coupled"
