"""A network without recurrence, which treats each step separately. Read next: elman.py."""

from torch import Tensor

from weft.nn.activations import Activation, Output, activate, pieces
from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import linear, shown_last
from weft.probe import record
from weft.shapes import check_choice


class Stepwise(VectorCell):
    """h_t = g1(U x_t + b), o_t = g2(V h_t + d), y_t = o_t: the same multilayer network at each step.

    Args:
        in_size: D, features of the input.
        size: O, features of the output.
        hidden: H, features of h; None takes `size`.
        activation: g1.
        output: g2.

    The state is the last output, for `shown`; no step reads it.

    Raises:
        ConfigError: an unknown activation or output.

    Example:
        >>> import torch
        >>> cell = Stepwise(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        hidden: int | None = None,
        activation: Activation = "tanh",
        output: Output = "tanh",
    ) -> None:
        hidden = size if hidden is None else hidden
        super().__init__(in_size, size)
        check_choice("activation", activation, Activation)
        check_choice("output", output, Output)
        self.activation = activation
        self.output = output
        self.weight_x, self.bias = input_weights(in_size, hidden, gates=pieces(activation))
        self.weight_o, self.bias_o = input_weights(hidden, size, gates=pieces(output))

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """One step of the equation; x may also be [B, T, D], for all steps at once."""
        h = activate(linear(x, self.weight_x, self.bias), self.activation)
        o = activate(linear(h, self.weight_o, self.bias_o), self.output)
        record("hidden", h)
        return o, (o,)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps in parallel, because they are independent."""
        o, last = shown_last(self.step(x, state)[0], state[0], mask)
        return o, (last,)
