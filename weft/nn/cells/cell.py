"""The contract of a recurrent cell: one step is all that a new cell must write.

Read next: elman.py, the simplest one; then ../recurrent.py, which stacks cells and runs them both ways.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from weft.tree import State, where


class Cell(nn.Module, ABC):
    """One recurrence: x_t and the state before it give y_t and the state after it.

    Args:
        in_size: D, features of the input.
        size: H, features of the output and of the state.

    A cell is added by one file in this folder: a class with `start` and `step`. It then works in
    every encoder and decoder, and the law suites test it.
    """

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__()
        self.in_size = in_size
        self.size = size

    @abstractmethod
    def start(self, like: Tensor) -> State:
        """The state before the first step, for as many rows as `like` [B, ...] has."""

    @abstractmethod
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: x [B, D] and a state give y [B, H] and the next state."""

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """All steps: the loop over `step`; kernels override it for speed, never for meaning.

        Args:
            x: [B, T, D].
            state: the state before the first step.
            mask: [B, T] bool; where False the state is held and y is zero.

        Returns:
            y: [B, T, H], and the state after the last step.
        """
        ys = []
        for t in range(x.shape[1]):
            y, new = self.step(x[:, t], state)
            if mask is not None:
                new = where(mask[:, t], new, state)
                y = y * mask[:, t, None]
            state = new
            ys.append(y)
        return torch.stack(ys, 1), state

    def shown(self, state: State) -> Tensor:
        """What the cell shows of a state, [B, H]: h. It is the state's first tensor unless overridden."""
        return state[0]
