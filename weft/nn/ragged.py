"""Batches with rows of very different lengths: the batch shrinks over time, to avoid computing padding.

Rows are sorted by length and time is cut into pieces; in each piece the recurrence runs only over the
unfinished rows. torch's packed sequences shrink at every step, which in training costs more than the padding
(docs/appendix/speed.md); a few pieces can use the kernels for whole sequences. Read next: recurrent.py.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.probe import watching
from weft.tree import State, leaves, like, tree_map

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
