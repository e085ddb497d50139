"""The contract of a recurrent cell: one step is all that a new cell must write.

Read next: elman.py, the simplest one; then ../recurrent.py, which stacks cells and runs them both ways.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.nn.padding import read_mask, restore, settle
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
            raise ConfigError(f"expected a cell with at least 1 input and size 1, got {in_size} and {size}")
        self.in_size = in_size
        self.size = size

    @abstractmethod
    def start(self, like: Tensor) -> State:
        """The state before the first step, for as many rows as `like` [B, ...] has."""

    @abstractmethod
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: x [B, D] and a state give y [B, H] and the next state."""

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """All steps.

        Args:
            x: [B, T, D], of the weights' dtype unless autocast is on.
            state: the state before the first step.
            mask: [B, T], True = real, at any positions; integers too, 0 = padding. At padding the state is
                held, y is zero, and what x contains is never used.

        Returns:
            y: [B, T, H], and the state after the last real step.

        Raises:
            ShapeError: sizes or dtypes that do not fit the cell or each other.
        """
        mask = self.check(x, state, mask)
        x, mask, places = settle(x, mask)
        y, state = self.run(x, state, mask)
        return restore(y, places), state

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps of what `forward` has checked; kernels override it for speed, never for meaning.

        Args:
            x: [B, T, D], finite at padding.
            state: the state before the first step.
            mask: [B, T] bool, real positions first, or None.
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

    def check(self, x: Tensor, state: State, mask: Tensor | None) -> Tensor | None:
        """Refuse inputs of `forward` that do not fit.

        Returns:
            The mask as bool.

        Raises:
            ShapeError: what was expected, what was found, what to do.
        """
        name = type(self).__name__
        if x.dim() != 3 or x.shape[2] != self.in_size:
            raise ShapeError(
                f"{name}: expected x of shape [rows, steps, {self.in_size}], got {list(x.shape)}; "
                "one sequence is a batch of one: x[None]"
            )
        if x.shape[1] == 0:
            raise ShapeError(f"{name}: expected x with at least one step, got {list(x.shape)}")
        if not isinstance(state, tuple):
            raise ShapeError(
                f"{name}: expected a state that is a tuple of tensors, got {type(state).__name__}"
            )
        zeros = self.start(x.new_empty(1, 1, device="meta"))
        need = [[len(x), *leaf.shape[1:]] for leaf in leaves(self.carried(zeros))]
        given = list(leaves(self.carried(state)))
        found = [list(leaf.shape) for leaf in given]
        if found != need:
            raise ShapeError(
                f"{name}: expected a state of shapes {need}, got {found}; cell.start(x) makes one of zeros"
            )
        weight = next(self.parameters(), None)
        if weight is not None:
            check_dtypes(name, weight.dtype, x, given)
        return None if mask is None else read_mask(mask, x, name)


def check_dtypes(name: str, dtype: torch.dtype, x: Tensor, state: Iterable[Tensor] = ()) -> None:
    """Refuse an input or a state of another dtype than the weights'; autocast converts floating point.

    Args:
        name: of who reads.
        dtype: of the weights.
        x: the input.
        state: tensors of the state before.

    Raises:
        ShapeError: naming both, and the conversion.
    """
    converts = torch._C._is_any_autocast_enabled()
    for what, given in (("x", x), *(("a state", leaf) for leaf in state)):
        if given.dtype != dtype and not (converts and given.dtype.is_floating_point):
            raise ShapeError(
                f"{name}: expected {what} of {dtype}, as the weights are, got {given.dtype}; "
                f"give {what.split()[-1]}.to({dtype}), or convert the model"
            )
