"""Run cells over time: stacked layers, one or both directions.

For truncated back-propagation call a stack on one segment after the other, passing on the states
detached with `tree.detach`.

With rows of very different lengths the batch shrinks over time, to avoid computing padding: rows are sorted
by length and time is cut into pieces; in each piece the recurrence runs only over the unfinished rows.
torch's packed sequences shrink at every step, which in training costs more than the padding
(docs/appendix/speed.md); a few pieces can use the kernels for whole sequences. Read next: cells/cell.py;
drop_in.py, torch.nn's interface; encoders/recurrent.py and decoders/recurrent.py, which use stacks.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError, ShapeError
from weft.masks import restore, settle
from weft.nn.border import called, check_mask, check_tensor, explained, read_mask, weight_of
from weft.nn.cells.cell import Cell, made
from weft.nn.cells.lstm import LSTM
from weft.nn.norms import norm_of
from weft.nn.ops import Dropout, Linear, opened
from weft.nn.randomness import recomputed
from weft.probe import watching
from weft.setting_types import DropoutRate
from weft.shapes import check_choice
from weft.tree import State, leaves, like, tree_map

Join = Literal["concatenate", "mean", "sum", "learned"]
Cells = Callable[[int, int], Cell] | tuple[Callable[[int, int], Cell], ...]
"""What builds a cell from input size and size; several take turns, layer by layer."""
LastNorm = Literal["none", "layer", "rms"]
Run = Callable[[Tensor, State, Tensor | None], tuple[Tensor, State]]
"""A recurrence over time: x [B, T, D], initial state, mask [B, T] or None, to y and the final state."""

CALL = 64  # overhead of a piece in rows x steps: weights are read and their gradients added once more
CUTS = 16  # maximum candidate cut points
GAIN = 0.75  # cut only if it saves at least a quarter of the cost; smaller savings gave no speed-up


class Piece(NamedTuple):
    """Steps begin <= t < end of the longest `rows` rows; `full` if all of them reach `end`."""

    begin: int
    end: int
    rows: int
    full: bool


class Plan(NamedTuple):
    """The pieces of a batch."""

    order: Tensor  # [B] rows, the longest first
    pieces: tuple[Piece, ...]


def plan(mask: Tensor) -> Plan | None:
    """How to cut a batch; None if it is not worthwhile, not on the CPU, or a probe is open."""
    if mask.device.type != "cpu" or watching():
        return None
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # the plan would become part of the graph
        return None
    lengths, order = mask.sum(1).sort(descending=True, stable=True)
    pieces = cut(lengths.tolist(), CALL)
    cost = sum(CALL + piece.rows * (piece.end - piece.begin) for piece in pieces)
    return Plan(order, pieces) if cost <= GAIN * (CALL + mask.numel()) else None


def cut(lengths: list[int], call: float) -> tuple[Piece, ...]:
    """The cheapest pieces, if each costs `call` (in rows x steps) plus its rows times its steps."""
    ends = sorted({length for length in lengths if length > 0}) or [0]
    if len(ends) > CUTS:
        ends = [ends[round(k * (len(ends) - 1) / (CUTS - 1))] for k in range(CUTS)]
    rows = [sum(length > begin for length in lengths) for begin in (0, *ends[:-1])]
    # best[k]: the minimum cost of everything before places[k]
    places = [0, *ends]
    best, previous = [0.0], [0]
    for k in range(1, len(places)):
        costs = [best[j] + call + rows[j] * (places[k] - places[j]) for j in range(k)]
        previous.append(min(range(k), key=costs.__getitem__))
        best.append(costs[previous[k]])
    pieces, k = [], len(ends)
    while k > 0:
        j = previous[k]
        pieces.append(Piece(places[j], places[k], rows[j], lengths[rows[j] - 1] >= places[k]))
        k = j
    return tuple(reversed(pieces))


def run_pieces(run: Run, x: Tensor, state: State, mask: Tensor, plan: Plan) -> tuple[Tensor, State]:
    """run(x, state, mask) without computing most of the padding; real positions come first."""
    order, pieces = plan
    state = tree_map(lambda leaf: leaf.index_select(0, order), state)
    ys, ended = [], []
    for part, (begin, end, rows, full) in zip(_Take.apply(x, order, pieces), pieces, strict=True):
        ended.append(tree_map(lambda leaf, rows=rows: leaf[rows:], state))
        state = tree_map(lambda leaf, rows=rows: leaf[:rows], state)
        inside = None if full else mask[:, begin:end].index_select(0, order[:rows])
        y, state = run(part, state, inside)
        ys.append(y)
    back = order.argsort()
    parts = zip(*map(leaves, [state, *reversed(ended)]), strict=True)
    after = like(state, [torch.cat(each) for each in parts])
    dtype = reduce(torch.promote_types, (y.dtype for y in ys))  # autocast may give pieces other dtypes
    y = _Put.apply(order, pieces, mask.shape[1], *(y.to(dtype) for y in ys))
    return y, tree_map(lambda leaf: leaf.index_select(0, back), after)


class _Take(torch.autograd.Function):
    """Split [B, T, D] into pieces; gradients of plain slices would have the full length T."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, pieces: tuple[Piece, ...]) -> tuple[Tensor, ...]:
        ctx.order, ctx.pieces, ctx.steps = order, pieces, x.shape[1]
        return tuple(x[:, p.begin : p.end].index_select(0, order[: p.rows]) for p in pieces)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return _Put.apply(ctx.order, ctx.pieces, ctx.steps, *grads), None, None


class _Put(torch.autograd.Function):
    """The inverse: pieces to [B, T, H], zero elsewhere."""

    @staticmethod
    def forward(ctx: Any, order: Tensor, pieces: tuple[Piece, ...], steps: int, *ys: Tensor) -> Tensor:
        ctx.order, ctx.pieces = order, pieces
        whole = ys[0].new_zeros(len(order), steps, ys[0].shape[2])
        for piece, y in zip(pieces, ys, strict=True):
            whole[:, piece.begin : piece.end].index_copy_(0, order[: piece.rows], y)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *_Take.apply(grad, ctx.order, ctx.pieces)


class Stack(nn.Module):
    """Recurrent layers; layer n > 1 reads the outputs of layer n - 1.

    Args:
        in_size: features of the input.
        sizes: hidden size of each layer (in each direction).
        cell: builds a cell from input size and size; several take turns, layer by layer.
        bidirectional: a second network with its own weights reads each layer from the end.
        join: how to combine the two directions: concatenation (forward first), mean, sum, or
            tanh(W [forward; backward] + b).
        residual: layers above the first add their input to their output.
        dropout: dropout rate after every layer, before a residual is added.
        last_norm: of the output; layers that normalise only their input (block) need one.
        last_dropout: whether dropout follows the last layer too.

    Attributes:
        size: features of the output.
        from_end: whether it is used on reversed sequences; information for diagnostics.

    Raises:
        ConfigError: there are no layers, or a residual layer's input and output differ in size.

    Source: Schuster & Paliwal 1997 for both directions; Wu et al. 2016 (GNMT), section 3.1, for residuals.

    Example:
        >>> import torch
        >>> stack = Stack(3, (5, 5, 5), residual=True)
        >>> y, finals = stack(torch.zeros(2, 7, 3))
        >>> y.shape, len(finals)
        (torch.Size([2, 7, 5]), 3)
    """

    from_end = False

    def __init__(
        self,
        in_size: int,
        sizes: tuple[int, ...],
        *,
        cell: Cells = LSTM,
        bidirectional: bool = False,
        join: Join = "concatenate",
        residual: bool = False,
        dropout: DropoutRate = 0.0,
        last_norm: LastNorm = "none",
        last_dropout: bool = True,
    ) -> None:
        super().__init__()
        if isinstance(sizes, int) or not sizes or min(sizes) < 1:
            raise ConfigError(
                "a recurrent network needs a size for each layer, for example sizes: [256, 256]"
            )
        check_choice("join", join, Join)
        check_choice("last_norm", last_norm, LastNorm)
        cells = cell if isinstance(cell, tuple) else (cell,)
        if not cells:
            raise ConfigError("cell: expected a cell or a list of at least one, got an empty list")
        self.bidirectional = bidirectional
        self.join = join
        self.residual = residual
        self.dropout, self.last_dropout = Dropout(dropout), last_dropout
        self.forwards, self.backwards, self.joins = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for layer, size in enumerate(sizes):
            wide = 2 * size if bidirectional and join == "concatenate" else size
            if residual and layer and wide != in_size:
                raise ConfigError(
                    f"residual: layer {layer + 1} reads {in_size} features and gives {wide}, but only equal "
                    "sizes can be added; give every layer the same size, or leave residual out"
                )
            make = cells[layer % len(cells)]
            self.forwards.append(made(make, in_size, size))
            if bidirectional:
                self.backwards.append(made(make, in_size, size))
                self.joins.append(Linear(2 * size, size) if join == "learned" else nn.Identity())
            in_size = wide
        self.size = in_size
        self.last_norm = nn.Identity() if last_norm == "none" else norm_of(in_size, last_norm)

    @property
    def state_sizes(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The sizes of the state tensors of each layer and direction."""
        directions = [self.forwards, self.backwards] if self.bidirectional else [self.forwards]
        return tuple(tuple(_state_sizes(cell) for cell in layer) for layer in zip(*directions, strict=True))

    def start(self, like: Tensor) -> tuple[State, ...]:
        """Each layer's initial state in forward direction, for the rows of `like`."""
        return tuple(cell.start(like) for cell in self.forwards)

    def begin(self, carried: tuple[tuple[Tensor, ...], ...], like: Tensor) -> tuple[State, ...]:
        """Each layer's initial state for the rows of `like`, from a bridge's tensors where it has some."""
        return tuple(
            cell.begin(tensors) if tensors else cell.start(like)
            for cell, tensors in zip(self.forwards, carried, strict=True)
        )

    def carried(self, finals: tuple[tuple[State, ...], ...]) -> tuple[tuple[tuple[Tensor, ...], ...], ...]:
        """The tensors of final states that a bridge may read, by layer and direction."""
        cells = zip(self.forwards, self.backwards, strict=True) if self.bidirectional else zip(self.forwards)
        return tuple(
            tuple(_bridged(cell, final) for cell, final in zip(layer, states, strict=True))
            for layer, states in zip(cells, finals, strict=True)
        )

    @explained("check_inputs")
    def forward(
        self,
        x: Tensor,
        states: tuple[State, ...] | None = None,
        mask: Tensor | None = None,
        backward: tuple[State, ...] | None = None,
    ) -> tuple[Tensor, tuple[tuple[State, ...], ...]]:
        """All layers over all steps.

        Args:
            x: [B, T, D].
            states: each layer's initial state in forward direction; None for the default.
            mask: [B, T], True = real, at any positions; see Cell.forward.
            backward: each layer's initial state in backward direction, likewise.

        Returns:
            y [B, T, size], and for each layer a tuple of final states, one per direction.

        Raises:
            ShapeError: no steps, a wrong number of features, or states with wrong rows or layers.
        """
        check_tensor("Stack", "x", x, ("rows", "steps", self.forwards[0].in_size))
        states = self.start(x) if states is None else check_states("Stack", states, x, len(self.forwards))
        x, mask, places = settle(x, None if mask is None else read_mask(mask, x, "Stack"))
        cuts = None if mask is None else plan(mask)
        run = partial(recomputed, _run) if self.training else _run
        finals = []
        for layer, cell in enumerate(self.forwards):
            y, final = run(cell, x, states[layer], mask, cuts)
            if self.bidirectional:
                back = self.backwards[layer]
                reverse = x.flip(1) if mask is None else masks.reverse(x, mask)
                begin = back.start(x) if backward is None else backward[layer]
                z, final_back = run(back, reverse, begin, mask, cuts)
                z = z.flip(1) if mask is None else masks.reverse(z, mask)
                y = self.joined(layer, y, z)
                finals.append((final, final_back))
            else:
                finals.append((final,))
            if self.training and (self.last_dropout or layer + 1 < len(self.forwards)):
                y = self.dropout(y)
            x = x + y if self.residual and layer else y
        if not isinstance(self.last_norm, nn.Identity):
            x = self.last_norm(x) if mask is None else self.last_norm(x) * mask[..., None]
        return restore(x, places), tuple(finals)

    def check_inputs(
        self,
        x: Tensor,
        states: tuple[State, ...] | None = None,
        mask: Tensor | None = None,
        backward: tuple[State, ...] | None = None,
    ) -> None:
        """Check the inputs of `forward`."""
        check_tensor("Stack", "x", x, ("rows", "steps", self.forwards[0].in_size), weight_of(self))
        if mask is not None:
            check_mask("Stack", mask, x)

    def shown(self, finals: tuple[State, ...]) -> Tensor:
        """The output [B, size] of the top layer's states, one per direction."""
        cells = [self.forwards[-1], *([self.backwards[-1]] if len(finals) == 2 else [])]
        shown = [cell.shown(final) for cell, final in zip(cells, finals, strict=True)]
        y = self.joined(len(self.forwards) - 1, *shown) if len(shown) == 2 else shown[0]
        return self.last_norm(y)  # type: ignore[no-any-return]

    def joined(self, layer: int, forward: Tensor, backward: Tensor) -> Tensor:
        """Combine the two directions [.., H] of a layer according to `join`."""
        if self.join == "mean":
            return (forward + backward) / 2
        if self.join == "sum":
            return forward + backward
        both = torch.cat([forward, backward], -1)
        return torch.tanh(self.joins[layer](both)) if self.join == "learned" else both


def _run(cell: Cell, x: Tensor, state: State, mask: Tensor | None, cuts: Plan | None) -> tuple[Tensor, State]:
    if x.shape[1] == 1 and mask is None and not (opened() and cell.step_weights()):
        # a search step: setting up a kernel costs more than the step, unless a loop shares its weights
        y, state = cell.step(x[:, 0], state)
        return y[:, None], state
    if mask is None or cuts is None:
        return cell(x, state, mask)
    return run_pieces(cell, x, state, mask, cuts)


def check_states(place: str, states: tuple[State, ...], x: Tensor, count: int) -> tuple[State, ...]:
    """Check the states of `count` layers (and directions) for the rows of x."""
    need = f"{place}: expected a state for each of {count} layers"
    if isinstance(states, Tensor) or (
        isinstance(states, tuple) and any(isinstance(one, Tensor) for one in states)
    ):  # h [L, B, H], or (h, c)
        form = f"a tensor {list(states.shape)}" if isinstance(states, Tensor) else "tensors of all layers"
        zipped = "zip(h)" if isinstance(states, Tensor) else "zip(h, c)"
        raise ShapeError(
            f"{need}, each a tuple of tensors [rows, size], got {form}; "
            f"torch's [layers, rows, size] become states by tuple({zipped}), and the state of a single cell "
            "of weft.nn.cells by (state,)"
        )
    if not isinstance(states, tuple) or len(states) != count:
        got = len(states) if isinstance(states, tuple) else called(states)
        raise ShapeError(f"{need}, or none to start anew, got {got}")
    for layer, state in enumerate(states):
        for leaf in leaves(state):
            if leaf.shape[0] != x.shape[0]:
                raise ShapeError(
                    f"{place}: layer {layer + 1}'s state {list(leaf.shape)} has {leaf.shape[0]} rows and "
                    f"the input {list(x.shape)} has {x.shape[0]}; carry the states of the same rows, or "
                    "start anew"
                )
    return states


def _state_sizes(cell: Cell) -> tuple[int, ...]:
    return tuple(leaf.shape[1] for leaf in _bridged(cell, cell.start(torch.zeros(1, cell.in_size))))


def _bridged(cell: Cell, state: State) -> tuple[Tensor, ...]:
    return tuple(cell.carried(state)) if cell.bridges else ()
