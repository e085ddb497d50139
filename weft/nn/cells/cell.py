"""The contract of a recurrent cell: a new cell only has to implement one step.

Read next: elman.py, the simplest one; ../recurrent.py, which stacks cells and runs them in both directions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.masks import restore, settle
from weft.nn.border import Explained, check_like, check_tensor, read_mask
from weft.nn.cells.initial import recurrent_weights
from weft.nn.ops import Gates, LayerInput, linear, run_layer, stepped
from weft.probe import exporting, watching
from weft.shapes import check_choice
from weft.tree import State, leaves, where


class Cell(Explained, nn.Module, ABC):
    """One recurrence: x_t and the previous state give y_t and the next state.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.

    Attributes:
        multiplies: whether the state is multiplied by a matrix; otherwise there is nothing to drop,
            project or keep orthogonal.
        bridges: whether a bridge may set the state; a state of many more numbers than `size`, which a learned
            map would make huge, begins with `start` instead.
        layered: whether the cells inside are layers, which diagnostics show one by one.
        keeps_output: whether a state begins with the last y, which no step reads and no bridge sets.

    Raises:
        ConfigError: a size below 1.

    A cell is one file in this folder: a class with `start` and `step`. It then works in every encoder and
    decoder, and the law tests cover it. Its state is a tuple of tensors [B, ..]; `shown` returns the last y.

    Example:
        >>> import torch
        >>> from weft.nn.cells import GRU
        >>> cell = GRU(3, 5)
        >>> state = cell.start(torch.zeros(2, 3))
        >>> y, state = cell.step(torch.zeros(2, 3), state)  # one step: [B, D] to [B, H]
        >>> y, state = cell(torch.zeros(2, 7, 3), state)  # many: [B, T, D] to [B, T, H]
        >>> y.shape
        torch.Size([2, 7, 5])
    """

    checks: ClassVar[Mapping[str, str]] = {"step": "check_step"}
    returns: ClassVar[Mapping[str, str | type]] = {"start": "state", "step": "tensor, state"}
    multiplies: bool = True
    bridges: bool = True
    layered: bool = False
    keeps_output: bool = False

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__()
        if not all(isinstance(one, Integral) and one >= 1 for one in (in_size, size)):
            raise ConfigError(f"expected a cell with at least 1 input and size 1, got {in_size} and {size}")
        self.in_size = in_size
        self.size = size

    @abstractmethod
    def start(self, like: Tensor) -> State:
        """The initial state for the rows of `like` [B, ...]."""

    @abstractmethod
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: x [B, D] and a state give y [B, H] and the next state."""

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """All steps.

        Args:
            x: [B, T, D], of the weights' dtype unless autocast is on.
            state: the initial state; None for that of `start`.
            mask: [B, T], True = real, at any positions; or integers, 0 = padding. At padding the state does
                not change, y is zero, and x is ignored.

        Returns:
            y: [B, T, H], and the state after the last real step.

        Raises:
            ShapeError: sizes or dtypes do not match the cell or each other.
        """
        if state is None and isinstance(x, Tensor):
            state = self.start(x)
        mask = self.check(x, state, mask)
        if mask is None:
            return self.run(x, state, None)
        x, mask, places = settle(x, mask)
        y, state = self.run(x, state, mask)
        return restore(y, places), state

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps, with inputs checked by `forward`; override it for speed only.

        Args:
            x: [B, T, D], finite at padding.
            state: the initial state.
            mask: [B, T] bool, real positions first, or None.
        """
        if exporting():
            return stepped(self, x, state, mask)
        ys = []
        for t in range(x.shape[1]):
            y, new = self.step(x[:, t], state)
            if mask is not None:
                new = where(mask[:, t], new, state)
                y = y * mask[:, t, None]
            state = new
            ys.append(y)
        return torch.stack(ys, 1), state

    def step_weights(self) -> Gates | None:
        """The weights of a step that compiled code can take in a search; None if it has no such step."""
        return None

    def shown(self, state: State) -> Tensor:
        """The output h [B, H] of a state: its first tensor by default."""
        return state[0]

    def step_dropped(self, x: Tensor, state: State, kept: Tensor) -> tuple[Tensor, State]:
        """A step whose recurrent products use h * kept; override it if h is also used elsewhere.

        Args:
            x: [B, D].
            state: its first tensor is h.
            kept: dropout mask [B, H].
        """
        return self.step(x, (state[0] * kept, *state[1:]))

    def carried(self, state: State) -> tuple[Tensor, ...]:
        """The tensors of a state that a bridge reads and sets: by default all but an output that is kept."""
        return state[1:] if self.keeps_output else state

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """The initial state from `carried` tensors."""
        if not self.keeps_output:
            return carried
        return carried[0].new_zeros(carried[0].shape[0], self.size), *carried

    def check(self, x: Tensor, state: State, mask: Tensor | None) -> Tensor | None:
        """Check the inputs of `forward`; returns the mask as bool."""
        name = type(self).__name__
        shape = x.shape if isinstance(x, Tensor) else ()
        if len(shape) != 3 or shape[2] != self.in_size or not shape[1] or not x.is_floating_point():
            check_tensor(name, "x", x, ("rows", "steps", self.in_size))
        if not isinstance(state, tuple):
            raise ShapeError(
                f"{name}: expected a state that is a tuple of tensors, got {type(state).__name__}; "
                "cell.start(x) makes one"
            )
        rows = x.shape[0]
        try:
            given = list(leaves(self.carried(state)))
        except IndexError:  # fewer tensors
            given = list(leaves(state))
        shapes = self._shapes() if torch.compiler.is_compiling() else self._kept_shapes
        if [leaf.shape for leaf in given] != [(rows, *shape) for shape in shapes]:
            need, found = [[rows, *shape] for shape in shapes], [list(leaf.shape) for leaf in given]
            layers = bool(given) and all(leaf.dim() == 1 + len(need[0]) for leaf in given)
            hint = "of torch's [layers, rows, size] give one layer, h[0]" if layers else ""
            raise ShapeError(
                f"{name}: expected a state of shapes {need}, got {found}; "
                f"{hint or 'cell.start(x) makes one of zeros'}"
            )
        weight = next((one for one in self._parameters.values() if one is not None), None)
        weight = next(self.parameters(), None) if weight is None else weight
        if weight is not None and any(
            one.dtype != weight.dtype or one.device != weight.device for one in (x, *given)
        ):
            check_like(name, weight, [("x", x), *(("a state", leaf) for leaf in given)])
        return None if mask is None else read_mask(mask, x, name)

    def check_step(self, x: Tensor, state: State) -> None:
        """Check the inputs of `step`."""
        check_tensor(type(self).__name__, "x of a step", x, ("rows", self.in_size))
        self.check(x[:, None], state, None)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of a row's carried tensors."""
        zeros = self.start(torch.empty(1, 1, device="meta"))
        return tuple(tuple(leaf.shape[1:]) for leaf in leaves(self.carried(zeros)))

    _kept_shapes = cached_property(_shapes)  # making zeros to compare with took as long as a small step


class VectorCell(Cell):
    """A cell whose state is one vector [B, H], or as many as `vectors` says, zeros at first."""

    vectors: ClassVar[int] = 1

    def start(self, like: Tensor) -> State:
        """Zeros, [B, H] each."""
        return (like.new_zeros(like.shape[0], self.size),) * self.vectors


Candidate = Literal["tanh", "sigmoid"]


class Gated(VectorCell):
    """Gates of W_x x + W_h h + b, each perhaps layer-normalised, and a kernel for all steps."""

    def __init__(
        self, in_size: int, size: int, *, gates: int, candidate: Candidate, normalised: bool
    ) -> None:
        super().__init__(in_size, size)
        check_choice("candidate", candidate, Candidate)
        self.candidate = candidate
        self.normalised = normalised
        self.weight_x, self.weight_h, self.bias = recurrent_weights(in_size, size, gates=gates)

    @property
    def usual(self) -> bool:
        """Whether kernels have the equation of the gates."""
        return not self.normalised and self.candidate == "tanh"

    @abstractmethod
    def kernel(self) -> str | None:
        """The name of the usual cell in the kernels; None if it runs step by step."""

    def kernel_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W_x, W_h, b and further weights, as the kernels take them."""
        return self.weight_x, self.weight_h, self.bias, None

    def energies(self, x: Tensor) -> Tensor:
        """W x + b of all gates, [.., G H]."""
        if self.normalised:
            return self.norm_x(linear(x, self.weight_x)) + self.bias  # type: ignore[no-any-return]
        return linear(x, self.weight_x, self.bias)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps with the kernel; step by step under a probe, to record the gates."""
        name = self.kernel() if self.usual and not watching() else None
        if name is None:
            return Cell.run(self, x, state, mask)
        h, c = (*state, None)[:2]
        weight_x, weight_h, bias, extra = self.kernel_weights()
        y, *after = run_layer(name, LayerInput(x, h, c, weight_x, weight_h, bias, extra, mask))
        return y, tuple(after[: len(state)])


def made(cell: Callable[..., Any], in_size: int, size: int) -> Cell:
    """A cell from its class; a layer made of a cell (weft/nn/layers.py) stands for that cell."""
    one = _unwrapped(cell)(in_size, size) if callable(cell) else cell
    if not isinstance(one, Cell):
        got = f"{type(one).__module__}.{type(one).__name__}" if isinstance(one, nn.Module) else repr(one)
        raise ConfigError(f"cell: expected a cell, such as the class weft.nn.cells.LSTM, got {got}")
    return one


def _unwrapped(cell: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(cell, partial):
        return partial(_unwrapped(cell.func), *cell.args, **cell.keywords)
    return getattr(cell, "cell_class", cell)
