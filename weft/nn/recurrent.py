"""Runs cells over time: layers above each other (C3), one or both directions (C4).

Read next: cells/cell.py for what a layer is made of; encoders/recurrent.py and decoders/recurrent.py
for where stacks are used.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.lstm import LSTM
from weft.nn.kernels.dropout import Dropout
from weft.nn.kernels.linear import Linear
from weft.shapes import check_choice
from weft.tree import State, leaves

Join = Literal["concatenate", "mean", "learned"]


class Stack(nn.Module):
    """Recurrent layers; layer n > 1 reads the outputs of layer n - 1.

    Args:
        in_size: features of the input.
        sizes: hidden size of each layer (in each direction).
        cell: makes a cell from its input size and its size.
        bidirectional: a second network with its own weights reads each layer from the end.
        join: how the two directions become one: forward first and backward after it, their mean, or
            tanh(W [forward; backward] + b).
        dropout: share of features set to zero after every layer in training.

    Attributes:
        size: features of the output.

    Raises:
        ConfigError: no layer.

    Source: Schuster & Paliwal 1997 for both directions.
    """

    def __init__(
        self,
        in_size: int,
        sizes: tuple[int, ...],
        *,
        cell: Callable[[int, int], Cell] = LSTM,
        bidirectional: bool = False,
        join: Join = "concatenate",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not sizes or min(sizes) < 1:
            raise ConfigError(
                "a recurrent network needs a size for each layer, for example sizes: [256, 256]"
            )
        check_choice("join", join, Join)
        self.bidirectional = bidirectional
        self.join = join
        self.dropout = Dropout(dropout)
        self.forwards, self.backwards, self.joins = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for size in sizes:
            self.forwards.append(cell(in_size, size))
            if bidirectional:
                self.backwards.append(cell(in_size, size))
                self.joins.append(Linear(2 * size, size) if join == "learned" else nn.Identity())
            in_size = 2 * size if bidirectional and join == "concatenate" else size
        self.size = in_size

    @property
    def state_sizes(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each layer, for each direction, the sizes of the tensors of its state."""
        directions = [self.forwards, self.backwards] if self.bidirectional else [self.forwards]
        return tuple(tuple(_state_sizes(cell) for cell in layer) for layer in zip(*directions, strict=True))

    def start(self, like: Tensor) -> tuple[State, ...]:
        """Each layer's state before the first step, forward direction, for the rows of `like`."""
        return tuple(cell.start(like) for cell in self.forwards)

    def forward(
        self, x: Tensor, states: tuple[State, ...] | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[tuple[State, ...], ...]]:
        """All layers over all steps.

        Args:
            x: [B, T, D].
            states: each layer's state before the first step, forward direction; None to start anew.
            mask: [B, T] bool, real positions first.

        Returns:
            y [B, T, size], and for each layer a tuple of final states, one a direction.
        """
        states = states or self.start(x)
        finals = []
        for layer, cell in enumerate(self.forwards):
            y, final = _run(cell, x, states[layer], mask)
            if self.bidirectional:
                back = self.backwards[layer]
                reverse = x.flip(1) if mask is None else masks.reverse(x, mask)
                z, final_back = _run(back, reverse, back.start(x), mask)
                z = z.flip(1) if mask is None else masks.reverse(z, mask)
                y = self.joined(layer, y, z)
                finals.append((final, final_back))
            else:
                finals.append((final,))
            x = self.dropout(y)
        return x, tuple(finals)

    def joined(self, layer: int, forward: Tensor, backward: Tensor) -> Tensor:
        """Two directions [.., H] of a layer as one, as `join` says."""
        if self.join == "mean":
            return (forward + backward) / 2
        both = torch.cat([forward, backward], -1)
        return torch.tanh(self.joins[layer](both)) if self.join == "learned" else both


def _run(cell: Cell, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
    if x.shape[1] == 1 and mask is None:  # a step of a search: the kernels' set-up costs more than the step
        y, state = cell.step(x[:, 0], state)
        return y[:, None], state
    return cell(x, state, mask)


def _state_sizes(cell: Cell) -> tuple[int, ...]:
    return tuple(leaf.shape[1] for leaf in leaves(cell.start(torch.zeros(1, cell.in_size))))
