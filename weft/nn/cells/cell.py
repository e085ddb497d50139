"""The contract of a recurrent cell: one step is all that a new cell must write.

Read next: elman.py, the simplest one; then ../recurrent.py, which stacks cells and runs them both ways.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.tree import State, leaves, where


class Cell(nn.Module, ABC):
    """One recurrence: x_t and the state before it give y_t and the state after it.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.

    Attributes:
        multiplies: whether a matrix is multiplied with the state; without one there is nothing to
            drop, project or keep orthogonal.

    Raises:
        ConfigError: a size below 1.

    A cell is added by one file in this folder: a class with `start` and `step`. It then works in
    every encoder and decoder, and the law suites test it. Its state is a tuple of tensors [B, ..];
    what the cell shows of it, `shown`, is the last y.
    """

    multiplies: bool = True

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__()
        if in_size < 1 or size < 1:
            raise ConfigError(f"a cell of {in_size} inputs and size {size} came, both must be 1 or more")
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

        Raises:
            ShapeError: sizes that do not fit the cell or each other.
        """
        self.check(x, state, mask)
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

    def step_dropped(self, x: Tensor, state: State, kept: Tensor) -> tuple[Tensor, State]:
        """A step whose recurrent products read h * kept; override it where h is read elsewhere, too.

        Args:
            x: [B, D].
            state: whose first tensor is h.
            kept: the mask, [B, H].
        """
        return self.step(x, (state[0] * kept, *state[1:]))

    def carried(self, state: State) -> tuple[Tensor, ...]:
        """The tensors of a state that a bridge may read and give: all of them unless overridden."""
        return state

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """The state before the first step from what was `carried`."""
        return carried

    def check(self, x: Tensor, state: State, mask: Tensor | None) -> None:
        """Refuse inputs of `forward` that do not fit.

        Raises:
            ShapeError: what came, what is needed, what to do.
        """
        name = type(self).__name__
        if x.dim() != 3 or x.shape[2] != self.in_size:
            raise ShapeError(
                f"{name}: x of shape {list(x.shape)} came, [rows, steps, {self.in_size}] is needed; "
                f"one sequence is a batch of one: x[None]"
            )
        if x.shape[1] == 0:
            raise ShapeError(f"{name}: x of shape {list(x.shape)} has no step; give one or more")
        if mask is not None and mask.shape != x.shape[:2]:
            raise ShapeError(f"{name}: mask of shape {list(mask.shape)} came, {list(x.shape[:2])} is needed")
        if not isinstance(state, tuple):
            raise ShapeError(f"{name}: a state of {type(state).__name__} came, a tuple of tensors is needed")
        zeros = self.start(x.new_empty(1, 1, device="meta"))
        need = [[len(x), *leaf.shape[1:]] for leaf in leaves(self.carried(zeros))]
        came = [list(leaf.shape) for leaf in leaves(self.carried(state))]
        if came != need:
            raise ShapeError(
                f"{name}: a state of shapes {came} came, {need} is needed; cell.start(x) makes one of zeros"
            )
