"""Variational dropout: one mask per sequence for the inputs of a cell's products."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell, made
from weft.nn.cells.lstm import LSTM
from weft.nn.ops import dropout
from weft.tree import State


class Variational(Cell):
    """The wrapped cell's products use x_t * m_x and h_{t-1} * m_h, with masks drawn once per sequence.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        cell: the wrapped cell; its own settings go in a table, `cell: {use: gru, reset: before}`.
        rate: dropout rate of h_{t-1}.
        input_rate: dropout rate of x_t.

    The masks are the last two tensors of the state, so that segments of a sequence share them; in
    evaluation they are None.

    Raises:
        ConfigError: a rate is not at least 0 and below 1, or the cell has no recurrent product.

    Source: Gal & Ghahramani 2016, "A theoretically grounded application of dropout in recurrent neural
    networks", equation 7.

    Example:
        >>> import torch
        >>> cell = Variational(3, 5, rate=0.2)
        >>> y, (h, c, kept_x, kept_h) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> kept_h.shape
        torch.Size([2, 5])
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        cell: Callable[[int, int], Cell] = LSTM,
        rate: float = 0.1,
        input_rate: float = 0.0,
    ) -> None:
        super().__init__(in_size, size)
        for name, share in (("rate", rate), ("input_rate", input_rate)):
            if not 0.0 <= share < 1.0:
                raise ConfigError(f"{name}: expected a share from 0 to below 1, got {share}")
        self.cell = made(cell, in_size, size)
        if not self.cell.multiplies:
            raise ConfigError(
                f"cell: {type(self.cell).__name__} does not multiply its h, so there is nothing to drop; "
                "use zoneout"
            )
        self.multiplies = False  # do not apply dropout twice
        self.rate = rate
        self.input_rate = input_rate

    def start(self, like: Tensor) -> State:
        """The cell's own, and fresh masks."""
        return self.begin(self.cell.start(like))

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        state = self.cell.begin(carried)
        if not self.training:
            return (*state, None, None)
        h: Tensor = state[0]
        read = h.new_ones(h.shape[0], self.in_size)
        return (
            *state,
            dropout(read, self.input_rate, training=True),
            dropout(torch.ones_like(h), self.rate, training=True),
        )

    def carried(self, state: State) -> tuple[Tensor, ...]:
        """The wrapped cell's tensors, without masks."""
        return self.cell.carried(state[:-2])

    def shown(self, state: State) -> Tensor:
        return self.cell.shown(state[:-2])

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of the wrapped cell with the masks applied."""
        *inner, kept_x, kept_h = state
        if kept_h is None:
            y, new = self.cell.step(x, tuple(inner))
        else:
            y, new = self.cell.step_dropped(x * kept_x, tuple(inner), kept_h)
        return y, (*new, kept_x, kept_h)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps; in evaluation with the wrapped cell's kernel."""
        if state[-1] is not None:
            return super().run(x, state, mask)
        y, new = self.cell(x, state[:-2], mask)
        return y, (*new, None, None)
