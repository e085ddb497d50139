"""A wrapper that projects the state (LSTMP): a cell's products read the narrow r_{t-1} = R h_{t-1}.

Read next: zoneout.py, variational.py.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell, made
from weft.nn.cells.lstm import LSTM
from weft.nn.ops import linear
from weft.tree import State


class Projected(Cell):
    """y_t = r_t = R h_t, and the recurrent matrices of the wrapped cell read r_{t-1} instead of h_{t-1}.

    With an LSTM inside this is LSTMP: i, f, o, c^ use W_r r_{t-1} + W_x x_t + b, while c and o tanh(c) keep
    `inner` features. The cell's W_h is the product W_r R, so all kernels of the cell work; this saves
    parameters, not computation.

    Args:
        in_size: D, features of the input.
        size: P, features of the output.
        cell: the wrapped cell; its own settings go in a table.
        inner: H, features of the wrapped cell.

    Raises:
        ConfigError: the projection is not narrower than the cell, or the cell has no matrix W_h.

    Source: Sak, Senior & Beaufays 2014, "Long short-term memory recurrent neural network architectures
    for large scale acoustic modeling", without its second, non-recurrent projection.

    Example:
        >>> import torch
        >>> cell = Projected(3, 5, inner=20)
        >>> y, (h, c) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, c.shape
        (torch.Size([2, 7, 5]), torch.Size([2, 20]))
    """

    def __init__(
        self, in_size: int, size: int, *, cell: Callable[[int, int], Cell] = LSTM, inner: int = 1024
    ) -> None:
        super().__init__(in_size, size)
        if inner <= size:
            raise ConfigError(f"inner: expected more than the projected size {size}, got {inner}")
        self.cell = made(cell, in_size, inner)
        if not isinstance(getattr(self.cell, "weight_h", None), nn.Parameter):
            name = type(self.cell).__name__
            raise ConfigError(f"cell: {name} has no matrix W_h of its own to project; take lstm or gru")
        self.cell.weight_h.data = torch.zeros_like(self.cell.weight_h)
        parametrize.register_parametrization(self.cell, "weight_h", _Narrow(inner, size))

    @property
    def projection(self) -> Tensor:
        """R, [P, H]."""
        parts: Any = self.cell.parametrizations
        weight: Tensor = parts.weight_h[0].weight
        return weight

    def start(self, like: Tensor) -> State:
        return self.cell.start(like)

    def shown(self, state: State) -> Tensor:
        """r, [B, P]."""
        return linear(self.cell.shown(state), self.projection)

    def carried(self, state: State) -> tuple[Tensor, ...]:
        return self.cell.carried(state)

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        return self.cell.begin(carried)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = self.cell.step(x, state)
        return linear(y, self.projection), state

    def step_dropped(self, x: Tensor, state: State, kept: Tensor) -> tuple[Tensor, State]:
        """See Cell.step_dropped; h is dropped before the projection."""
        y, state = self.cell.step_dropped(x, state, kept)
        return linear(y, self.projection), state

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        y, state = self.cell(x, state, mask)
        return linear(y, self.projection), state


class _Narrow(nn.Module):
    """W_h = W_r R, where W_r [G H, P] is the trained original and R [P, H] is `weight`."""

    def __init__(self, inner: int, size: int) -> None:
        super().__init__()
        self.weight = nn.init.xavier_uniform_(nn.Parameter(torch.empty(size, inner)))

    def forward(self, narrow: Tensor) -> Tensor:
        return narrow @ self.weight

    def right_inverse(self, weight: Tensor) -> Tensor:
        return nn.init.xavier_uniform_(weight.new_empty(len(weight), len(self.weight)))
