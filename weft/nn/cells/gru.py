"""The gated recurrent unit, with the reset gate before or after the recurrent product."""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Candidate, Gated
from weft.nn.cells.initial import GateNorm
from weft.nn.ops import Gates, equations, linear
from weft.probe import record_all, watching
from weft.shapes import check_choice

Reset = Literal["after", "before"]


class GRU(Gated):
    """u, r = sigmoid(W h_{t-1} + W x_t + b), h_t = u h_{t-1} + (1 - u) h^.

    reset = "after" (torch, cuDNN): h^ = tanh(W_x x_t + b_x + r (W_h h_{t-1} + b_h)).
    reset = "before" (Cho 2014): h^ = tanh(W_h (r h_{t-1}) + W_x x_t + b).

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        reset: position of the reset gate.
        candidate: the activation of h^; with "sigmoid" h stays in (0, 1) if it starts there.
        forget_bias: initial value of b_u; u = 1 keeps the old state.
        normalised: layer normalisation of each gate's W x and W h.

    The gates are stacked r, u, h^ as in torch.nn.GRU (whose z is our u), with one bias instead of torch's
    two, except for b_h (`bias_n`).

    Raises:
        ConfigError: an unknown `reset` or `candidate`.

    Source: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder"; layer
    normalisation: Ba 2016, appendix.

    Example:
        >>> import torch
        >>> cell = GRU(3, 5)
        >>> y, (h,) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape
        torch.Size([2, 7, 5])
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        reset: Reset = "after",
        candidate: Candidate = "tanh",
        forget_bias: float = 0.0,
        normalised: bool = False,
    ) -> None:
        super().__init__(in_size, size, gates=3, candidate=candidate, normalised=normalised)
        check_choice("reset", reset, Reset)
        self.reset = reset
        self.bias.data[size : 2 * size] = forget_bias
        if reset == "after":
            self.bias_n = nn.Parameter(torch.zeros(size))
        self.norm_x = GateNorm(size, gates=3) if normalised else nn.Identity()
        self.norm_h = GateNorm(size, gates=2) if normalised else nn.Identity()
        self.norm_n = GateNorm(size) if normalised else nn.Identity()

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        return self._step(x, state[0], state[0])

    def step_dropped(self, x: Tensor, state: tuple[Tensor], kept: Tensor) -> tuple[Tensor, tuple[Tensor]]:
        """See Cell.step_dropped; u h_{t-1} uses the whole h."""
        return self._step(x, state[0], state[0] * kept)

    def _step(self, x: Tensor, h: Tensor, read: Tensor) -> tuple[Tensor, tuple[Tensor]]:
        """One step whose recurrent products use `read` instead of h."""
        gates, n_x = self.energies(x).split([2 * self.size, self.size], -1)
        weight_g, weight_n = self.weight_h.split([2 * self.size, self.size])
        if self.reset == "after":
            gates_h, n_h = linear(read, self.weight_h).split([2 * self.size, self.size], -1)
        else:
            gates_h = linear(read, weight_g)

        def inner(r: Tensor) -> Tensor:
            if self.reset == "after":
                return r * (self.norm_n(n_h) + self.bias_n)
            return self.norm_n(linear(r * read, weight_n))

        new = equations.gru(gates + self.norm_h(gates_h), n_x, inner, h, activation=self.candidate)
        if watching():
            record_all(**new._asdict())
        return new.hidden, (new.hidden,)

    def step_weights(self) -> Gates | None:
        if not self.usual or self.reset != "after":
            return None
        return Gates("gru", self.weight_x, self.bias, self.weight_h, self.bias_n)

    def kernel(self) -> str:
        return "gru" if self.reset == "after" else "gru_before"

    def kernel_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        bias_n = self.bias_n if self.reset == "after" else None
        return self.weight_x, self.weight_h, self.bias, bias_n
