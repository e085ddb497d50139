"""Zoneout, a wrapper for any cell: some features of the state keep their old values.

Read next: variational.py.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell, made
from weft.nn.cells.lstm import LSTM
from weft.nn.ops import dropout
from weft.tree import State


class Zoneout(Cell):
    """s_t = d s_{t-1} + (1 - d) s^_t for each tensor s of the state, where the cell computes s^_t.

    In training d is 1 with probability `rate` for each feature and step, otherwise 0; in evaluation d is
    its mean, `rate`.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        cell: the wrapped cell; its own settings go in a table, `cell: {use: gru, reset: before}`.
        rate: share of the state that keeps its old value.

    Raises:
        ConfigError: the rate is below 0, or 1 or more.

    Source: Krueger et al. 2017, "Zoneout: regularizing RNNs by randomly preserving hidden activations".

    Example:
        >>> import torch
        >>> cell = Zoneout(3, 5, rate=0.2)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    def __init__(
        self, in_size: int, size: int, *, cell: Callable[[int, int], Cell] = LSTM, rate: float = 0.1
    ) -> None:
        super().__init__(in_size, size)
        if not 0.0 <= rate < 1.0:
            raise ConfigError(f"rate: expected a share from 0 to below 1, got {rate}")
        self.cell = made(cell, in_size, size)
        self.multiplies = self.cell.multiplies
        self.rate = rate

    def start(self, like: Tensor) -> State:
        return self.cell.start(like)

    def shown(self, state: State) -> Tensor:
        return self.cell.shown(state)

    def carried(self, state: State) -> tuple[Tensor, ...]:
        return self.cell.carried(state)

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        return self.cell.begin(carried)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of the wrapped cell with part of it undone; y is the output of the resulting state."""
        return self._zoned(state, self.cell.step(x, state)[1])

    def step_dropped(self, x: Tensor, state: State, kept: Tensor) -> tuple[Tensor, State]:
        return self._zoned(state, self.cell.step_dropped(x, state, kept)[1])

    def _zoned(self, old: State, new: State) -> tuple[Tensor, State]:
        state = tuple(self._mixed(*pair) for pair in zip(old, new, strict=True))
        return self.cell.shown(state), state

    def _mixed(self, old: Tensor | None, new: Tensor | None) -> Tensor | None:
        if old is None or new is None:
            return new
        if not self.training:
            return self.rate * old + (1 - self.rate) * new
        stays = dropout(torch.ones_like(new), self.rate, training=True) == 0
        return torch.where(stays, old, new)
