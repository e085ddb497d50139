"""Stacks: residuals, eight layers, extreme lengths, carried state, truncation, errors."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import READ, ROWS, SIZE, close, normal, ready
from weft import masks, tree
from weft.errors import ConfigError, ShapeError
from weft.nn import recurrent
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.recurrent import Stack
from weft.tree import State

CELLS = {"elman": Elman, "lstm": LSTM, "gru": GRU, "gru-before": partial(GRU, reset="before")}
every_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
LENGTHS = [1, 41, 2, 3, 40, 3, 7]


@every_cell
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one", "both"])
def test_a_residual_adds_what_a_layer_read(cell: type, bidirectional: bool) -> None:
    settings = {"cell": cell, "bidirectional": bidirectional, "join": "sum"}
    stack = ready(lambda: Stack(READ, (SIZE, SIZE, SIZE), residual=True, **settings))
    x = normal(ROWS, 7, READ)
    want = x
    for layer in range(3):  # each layer as a stack on its own
        alone = ready(lambda inside=want.shape[2]: Stack(inside, (SIZE,), **settings))
        alone.forwards[0] = stack.forwards[layer]
        if bidirectional:
            alone.backwards[0] = stack.backwards[layer]
        y, _ = alone(want)
        want = y if layer == 0 else want + y
    close(stack(x)[0], want)


@pytest.mark.parametrize("steps", [1, 10_000])
def test_one_step_and_ten_thousand(steps: int) -> None:
    stack = ready(lambda: Stack(2, (3,)), torch.float32)  # torch needs ten times as long in float64
    cell = stack.forwards[0]
    theirs = nn.LSTM(2, 3, batch_first=True)
    given = {"weight_ih_l0": cell.weight_x, "weight_hh_l0": cell.weight_h, "bias_ih_l0": cell.bias}
    theirs.load_state_dict(given | {"bias_hh_l0": torch.zeros(12)})
    lengths = [steps, 1, max(1, steps // 2)]
    x, mask = normal(3, steps, 2, dtype=torch.float32), masks.from_lengths(torch.tensor(lengths), steps)
    got, _ = stack(x, mask=mask)
    want = [theirs(x[row : row + 1, :length])[0] for row, length in enumerate(lengths)]
    for row, length in enumerate(lengths):
        close(got[row : row + 1, :length], want[row], 1e-5)
    wanted = [theirs.weight_hh_l0, theirs.weight_ih_l0]
    gradients = torch.autograd.grad(got.sum(), [cell.weight_h, cell.weight_x])
    close(gradients, torch.autograd.grad(sum(y.sum() for y in want), wanted), 1e-3)  # sums of 15,001 terms


@every_cell
@pytest.mark.parametrize("call", [0.0, 30.0, 1e9], ids=["every cut", "some", "none"])
def test_law_7_a_batch_that_shrinks_equals_the_whole_batch(cell: type, call: float) -> None:
    cell = ready(lambda: cell(READ, SIZE))
    mask = masks.from_lengths(torch.tensor([*LENGTHS, 0]), 43)
    x = normal(8, 43, READ)
    lengths, order = mask.sum(1).sort(descending=True)
    plan = recurrent.Plan(order, recurrent.cut(lengths.tolist(), call))
    gradients = []
    for run in (cell, lambda x, state, mask: recurrent.run_pieces(cell, x, state, mask, plan)):
        read = x.clone().requires_grad_()
        before = tuple(normal(8, SIZE, seed=3 + k).requires_grad_() for k in range(len(cell.start(x))))
        y, after = run(read, before, mask)
        total = sum((normal(*end.shape, seed=k) * end).sum() for k, end in enumerate([y, *after]))
        wanted = [read, *before, *cell.parameters()]
        gradients.append((y, *after, *torch.autograd.grad(total, wanted)))
    close(gradients[1], gradients[0])


def test_pieces_of_a_batch_may_be_computed_in_other_dtypes() -> None:
    """Under autocast a long piece may come from another way than a short one, and in another dtype."""
    cell, mask = ready(lambda: LSTM(READ, SIZE)), masks.from_lengths(torch.tensor(LENGTHS), 43)
    lengths, order = mask.sum(1).sort(descending=True)
    plan = recurrent.Plan(order, recurrent.cut(lengths.tolist(), 0.0))

    def run(part: Tensor, state: State, inside: Tensor | None) -> tuple[Tensor, State]:
        y, after = cell(part, state, inside)
        return (y.bfloat16() if len(part) > 3 else y), after

    x = normal(len(LENGTHS), 43, READ).requires_grad_()
    y, _ = recurrent.run_pieces(run, x, cell.start(x), mask, plan)
    assert y.dtype == x.dtype
    close(y, cell(x, cell.start(x), mask)[0], 1e-2)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    close(gradient, torch.autograd.grad(cell(x, cell.start(x), mask)[0].sum(), x)[0], 1e-2)


@every_cell
def test_a_stack_cuts_a_batch_of_very_different_lengths(cell: type) -> None:
    stack = ready(lambda: Stack(READ, (5, SIZE), cell=cell, bidirectional=True))
    lengths = [431, 2, 3, 1, 29]
    mask = masks.from_lengths(torch.tensor(lengths), 431)
    assert recurrent.plan(mask) is not None
    x = normal(5, 431, READ)
    y, finals = stack(x, mask=mask)
    for row, length in enumerate(lengths):
        alone, ends = stack(x[row : row + 1, :length])
        close(y[row : row + 1, :length], alone)
        close(tree.take(finals, torch.tensor([row])), ends)


@pytest.mark.parametrize("seed", range(5))
def test_cuts_cost_the_least_that_any_cuts_do(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = sorted(random.integers(1, 60, 6).tolist(), reverse=True)

    def cost(ends: list[int]) -> float:
        starts = [0, *ends[:-1]]
        return sum(30 + sum(n > a for n in lengths) * (b - a) for a, b in zip(starts, ends, strict=True))

    inner = sorted({*lengths} - {lengths[0]})
    every = [
        [end for bit, end in enumerate(inner) if chosen >> bit & 1] + [lengths[0]]
        for chosen in range(2 ** len(inner))
    ]
    pieces = recurrent.cut(lengths, 30.0)
    assert cost([piece.end for piece in pieces]) == min(map(cost, every))
    assert [piece.full for piece in pieces] == [
        all(n <= p.begin or n >= p.end for n in lengths) for p in pieces
    ]


def test_the_truncated_gradient_is_the_one_of_the_equation() -> None:
    """C11: h_t = tanh(w h_{t-1} + x_t), loss sum_t h_t, cut every k steps; dh_t/dw stops at a cut."""
    w, k, steps = 0.7, 3, 11
    stack = ready(lambda: Stack(1, (1,), cell=Elman))
    cell = stack.forwards[0]
    for parameter, value in ((cell.weight_x, 1.0), (cell.weight_h, w), (cell.bias, 0.0)):
        parameter.data.fill_(value)
    x = normal(1, steps, 1)
    states, total = None, 0.0
    for piece in x.split(k, 1):
        states = None if states is None else tree.detach(states)
        y, finals = stack(piece, states)
        states = tuple(layer[0] for layer in finals)
        y.sum().backward()  # the graph of earlier pieces is freed: nothing can reach beyond the cut
        total += float(y.detach().sum())
    h, slope, want, full, whole = 0.0, 0.0, 0.0, 0.0, 0.0
    through = 0.0
    for t in range(steps):
        if t % k == 0:
            slope = 0.0  # the carried state is a constant
        before, h = h, np.tanh(w * h + float(x[0, t, 0]))
        slope = (1 - h * h) * (before + w * slope)
        through = (1 - h * h) * (before + w * through)
        want, full, whole = want + slope, full + through, whole + h
    assert total == pytest.approx(whole, abs=1e-12)  # truncation changes gradients, never numbers
    assert float(cell.weight_h.grad) == pytest.approx(want, abs=1e-12)
    cell.weight_h.grad = None
    stack(x)[0].sum().backward()
    assert float(cell.weight_h.grad) == pytest.approx(full, abs=1e-12)
    assert abs(full - want) > 1e-3


@pytest.mark.parametrize("sizes", [(5, 3)])
@every_cell
def test_pieces_with_carried_state_give_the_numbers_of_one_call(cell: type, sizes: tuple[int, ...]) -> None:
    stack = ready(lambda: Stack(READ, sizes, cell=cell))
    x = normal(ROWS, 11, READ)
    whole, last = stack(x)
    states, ys = None, []
    for piece in x.split(4, 1):
        y, finals = stack(piece, states)
        states = tree.detach(tuple(layer[0] for layer in finals))
        assert not any(leaf.requires_grad for leaf in tree.leaves(states))
        ys.append(y)
    close(torch.cat(ys, 1), whole)
    close(states, tuple(layer[0] for layer in last))


X = torch.zeros(2, 5, 3)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: Stack(3, (4, 5), residual=True),
            ConfigError,
            "residual: layer 2 reads 4 features and gives 5",
        ),
        (
            lambda: Stack(3, (4, 5, 4), residual=True, bidirectional=True),
            ConfigError,
            "layer 2 reads 8 features and gives 10",
        ),
        (lambda: Stack(4, (5,))(X), ShapeError, r"Stack: expected x of .* got \[2, 5, 3\]"),
        (lambda: Stack(3, (5,))(X[:, :0]), ShapeError, r"at least one step, got \[2, 0, 3\]"),
        (lambda: Stack(3, (5, 5))(X, Stack(3, (5,)).start(X)), ShapeError, "each of 2 layers"),
        (
            lambda: Stack(3, (5,))(X, Stack(3, (5,)).start(torch.zeros(7, 3))),
            ShapeError,
            r"layer 1's state \[7, 5\] has 7 rows and the input \[2, 5, 3\] has 2",
        ),
        (lambda: RecurrentEncoder(3, sizes=(4, 5), residual=True), ConfigError, "only equal sizes can"),
        (lambda: RecurrentDecoder(3, sizes=(4, 5), residual=True), ConfigError, "only equal sizes can"),
        (lambda: RecurrentDecoder(3, bidirectional=True), ConfigError, "must not see later words"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object], error: type, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()


def test_a_recurrent_decoder_with_residuals_is_its_stack() -> None:
    decoder = ready(lambda: RecurrentDecoder(READ, sizes=(SIZE, SIZE), residual=True))
    x = normal(ROWS, 7, READ)
    assert decoder.stack.residual
    close(decoder(x, decoder.start(None, ROWS))[0], decoder.stack(x)[0])
