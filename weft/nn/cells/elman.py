"""The plain recurrent network of Elman (1990). Read next: lstm.py."""

from torch import Tensor, nn

from weft.nn.activations import Recurrent, activate, modrelu, pieces
from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import Start, recurrent_weights, rotations_
from weft.nn.ops import ELMAN_CELLS, LayerInput, linear, run_layer
from weft.probe import record, watching
from weft.shapes import check_choice


class Elman(VectorCell):
    """h_t = g(W_xh x_t + W_hh h_{t-1} + b_h), y_t = h_t.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        activation: g; all but maxout have a kernel for all steps. modrelu uses b_h as its own bias: g(z)
            = sign(z) relu(|z| + b_h), with no other bias.
        weights: initialisation of W_hh. "identity" with activation "relu" is the IRNN, whose state is a
            sum at first (W_xh is then drawn from N(0, 0.001)). "rotations" rotates pairs of units by
            random angles.

    Raises:
        ConfigError: an unknown activation, or unknown initial weights.

    Source: Elman 1990, "Finding structure in time"; IRNN: Le, Jaitly & Hinton 2015, "A simple way to
    initialize recurrent networks of rectified linear units".

    Example:
        >>> import torch
        >>> cell = Elman(3, 5)
        >>> y, state = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape
        torch.Size([2, 7, 5])
    """

    def __init__(
        self, in_size: int, size: int, *, activation: Recurrent = "tanh", weights: Start = "orthogonal"
    ) -> None:
        super().__init__(in_size, size)
        check_choice("activation", activation, Recurrent)
        check_choice("weights", weights, Start)
        self.activation = activation
        self.weight_x, self.weight_h, self.bias = recurrent_weights(in_size, size, gates=pieces(activation))
        if weights == "identity":
            nn.init.normal_(self.weight_x, std=0.001)
            for piece in self.weight_h.data.split(size):
                nn.init.eye_(piece)
        elif weights == "rotations":
            for piece in self.weight_h.data.split(size):
                rotations_(piece)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        inside = self.activation == "modrelu"
        energy = linear(x, self.weight_x, None if inside else self.bias) + linear(state[0], self.weight_h)
        h = modrelu(energy, self.bias) if inside else activate(energy, self.activation)
        record("hidden", h)
        return h, (h,)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps, with the kernel if it supports the activation."""
        if self.activation == "maxout" or watching():
            return super().run(x, state, mask)
        given = LayerInput(x, state[0], None, self.weight_x, self.weight_h, self.bias, None, mask)
        y, h, _ = run_layer(ELMAN_CELLS[self.activation], given)
        return y, (h,)
