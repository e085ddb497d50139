"""The recurrent network of Jordan (1986), which feeds back its output. Read next: lstm.py."""

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import restore, settle
from weft.nn.activations import Activation, Output, activate, pieces
from weft.nn.border import check_like
from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import linear, shown_last
from weft.probe import record
from weft.shapes import check_choice, check_shape


class Jordan(VectorCell):
    """h_t = g1(W o_{t-1} + U x_t + b), o_t = g2(V h_t + d); y_t and the state are o_t.

    Args:
        in_size: D, features of the input.
        size: O, features of the output.
        hidden: H, features of h; None takes `size`.
        activation: g1.
        output: g2.

    If the true outputs are known, pass them shifted by one step (`fed`); then the steps are independent and
    run in parallel. Otherwise the cell reads its own outputs, as it always does in an encoder or a decoder.

    Raises:
        ConfigError: an unknown activation or output, or `hidden` below 1.

    Source: Jordan 1986, "Serial order: a parallel distributed processing approach".

    Example:
        >>> import torch
        >>> cell, x, true = Jordan(3, 1, hidden=5), torch.zeros(2, 7, 3), torch.ones(2, 7, 1)
        >>> (before,) = cell.start(x)
        >>> y, state = cell(x, (before,), fed=torch.cat([before[:, None], true[:, :-1]], 1))  # training
        >>> y, state = cell(x, (before,))                                                      # free running
    """

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
        if hidden < 1:
            raise ConfigError(f"hidden: expected at least 1, got {hidden}")
        self.activation = activation
        self.output = output
        self.weight_x, self.bias = input_weights(in_size, hidden, gates=pieces(activation))
        self.weight_o, self.bias_o = input_weights(hidden, size, gates=pieces(output))
        self.weight_h = nn.init.orthogonal_(nn.Parameter(self.weight_x.new_empty(len(self.bias), size)))

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """One step of the equation; x and the previous output may also be [B, T, ..], all steps at once."""
        energy = linear(x, self.weight_x, self.bias) + linear(state[0], self.weight_h)
        h = activate(energy, self.activation)
        o = activate(linear(h, self.weight_o, self.bias_o), self.output)
        record("hidden", h)
        return o, (o,)

    def forward(
        self,
        x: Tensor,
        state: tuple[Tensor] | None = None,
        mask: Tensor | None = None,
        fed: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor]]:
        """See Cell.forward.

        Args:
            x: [B, T, D].
            state: (o,), [B, O]; with `fed` it is used only for rows without a real position.
            mask: [B, T] bool.
            fed: [B, T, O], replaces o_{t-1} at each step: the true outputs shifted by one.
        """
        if fed is None:
            return super().forward(x, state, mask)
        state = self.start(x) if state is None else state
        mask = self.check(x, state, mask)
        check_shape("fed", fed, x.shape[0], x.shape[1], self.size)
        check_like("Jordan", self.bias, [("x", x), ("a state", fed)])
        both, mask, places = settle(torch.cat([x, fed], -1), mask)
        x, fed = both.split([self.in_size, self.size], -1)
        o, last = shown_last(self.step(x, (fed,))[0], state[0], mask)
        return restore(o, places), (last,)
