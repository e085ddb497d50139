"""Padding at any position with any content changes no output and no gradient, with every kernel."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.laws.members import (
    CELLS,
    DECODERS,
    ENCODERS,
    HEADS,
    READ,
    ROWS,
    SIZE,
    SOURCE,
    TARGET,
    TARGET_LENGTHS,
    WRITE,
    Make,
    cases,
    close,
    keeps,
    normal,
    one_of_each,
    ready,
    source,
)
from weft import masks, tree
from weft.errors import ShapeError
from weft.nn.cells.cell import Cell
from weft.nn.encoders.encoder import BagEncoder
from weft.nn.kernels import choice
from weft.nn.recurrent import Stack

CONTENTS = [torch.nan, torch.inf, 1e30]

SCATTERED = torch.tensor(
    [
        [0, 0, 0, 1, 1, 1, 1],  # left padding
        [1, 0, 1, 0, 0, 1, 1],  # gaps
        [0, 0, 0, 0, 1, 0, 0],  # one real position
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 0, 0, 0],  # right padding
    ]
).bool()
"""[B, S]: rows whose real positions do not come first, beside some whose do."""


def derived(run: Callable[[Tensor], Any], x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Output of `run` for x, and the gradients of a random combination of it by x and `others`."""
    x = x.clone().requires_grad_()
    outs = list(tree.leaves(run(x)))
    total = sum((normal(*out.shape, seed=k, dtype=out.dtype) * out).sum() for k, out in enumerate(outs))
    return (*outs, *torch.autograd.grad(total, (x, *others), materialize_grads=True))


def by_hand(cell: Cell, x: Tensor, state: tree.State, mask: Tensor) -> tuple[Tensor, tree.State]:
    """Each row on its own: its real positions only, step by step."""
    ys, states = [], []
    for row in range(len(x)):
        here, outs = tree.take(state, torch.tensor([row])), []
        for t in range(x.shape[1]):
            if mask[row, t]:
                y, here = cell.step(x[row : row + 1, t], here)
                outs.append(y[0])
            else:
                outs.append(x.new_zeros(cell.size))
        ys.append(torch.stack(outs))
        states.append(here)
    joined = [torch.cat(parts) for parts in zip(*map(tree.leaves, states), strict=True)]
    return torch.stack(ys), tuple(joined)


def real_positions_stand_anywhere(make: Make) -> None:
    for dtype, ways in ((torch.float64, ("auto",)), (torch.float32, ("auto", "torch"))):
        cell = ready(lambda: make(READ, SIZE), dtype)
        x, tolerance = normal(ROWS, SOURCE, READ, dtype=dtype), 1e-10 if dtype == torch.float64 else 2e-5
        state = tree.detach(cell.step(normal(ROWS, READ, seed=7, dtype=dtype), cell.start(x))[1])
        want = derived(lambda x: by_hand(cell, x, state, SCATTERED), x, *cell.parameters())  # noqa: B023
        for way in ways:
            with choice.use(cells=way):  # type: ignore[arg-type]
                got = derived(lambda x: cell(x, state, SCATTERED), x, *cell.parameters())  # noqa: B023
                assert torch.equal(cell(x, state, SCATTERED.long())[0], got[0])
            for one, other in zip(got, want, strict=True):
                close(one, other, tolerance * max(1.0, float(other.detach().abs().max())))


def nan_infinities_and_large_numbers_change_nothing(make: Make) -> None:
    """The padding holds the contents in turn, one position each."""
    cell = ready(lambda: make(READ, SIZE), torch.float32)
    turns = torch.tensor(CONTENTS).repeat(ROWS * SOURCE)[: ROWS * SOURCE]
    for way in ("auto", "torch", "steps"):
        for mask in (source()[1], SCATTERED):
            x = normal(ROWS, SOURCE, READ, dtype=torch.float32).masked_fill(~mask[..., None], 0.0)
            loud = x.where(mask[..., None], turns.view(ROWS, SOURCE, 1))
            run = lambda x: cell(x, cell.start(x.detach()), mask)  # noqa: B023, E731
            with choice.use(cells=way):  # type: ignore[arg-type]
                want, got = (derived(run, given, *cell.parameters()) for given in (x, loud))
            assert all(one.isfinite().all() for one in want), way
            assert all(torch.equal(one, other) for one, other in zip(want, got, strict=True)), way


@cases(CELLS)
def test_padding_changes_nothing_in_a_cell(make: Make) -> None:
    keeps([real_positions_stand_anywhere, nan_infinities_and_large_numbers_change_nothing], make)


@cases(ENCODERS)
def test_contents_of_padding_change_nothing_in_an_encoder(make: Make) -> None:
    encoder = ready(lambda: make(READ))
    x, mask = source()

    def run(x: Tensor) -> Any:
        memory = encoder(x, mask)
        real = memory.states.masked_fill(~memory.mask[..., None], 0.0)
        return real, memory.summary, memory.carry

    want = derived(run, x.masked_fill(~mask[..., None], 0.0), *encoder.parameters())
    for content in CONTENTS:
        close(derived(run, x.masked_fill(~mask[..., None], content), *encoder.parameters()), want)


@cases(DECODERS)
def test_contents_of_padding_change_nothing_in_a_decoder(make: Make) -> None:
    encoder = BagEncoder(READ, size=SIZE).double()
    decoder = ready(lambda: make(WRITE, encoder))
    memory = tree.detach(encoder(*source()))
    x, mask = normal(ROWS, TARGET, WRITE, seed=2), masks.from_lengths(torch.tensor(TARGET_LENGTHS), TARGET)

    def run(x: Tensor) -> tuple[Tensor, ...]:
        ys = tree.leaves(decoder(x, decoder.start(memory, ROWS), mask)[0])
        real = [y.masked_fill(~mask[..., None], 0.0) for y in ys if y.shape[:2] == mask.shape]
        return tuple(real)

    want = derived(run, x.masked_fill(~mask[..., None], 0.0), *decoder.parameters())
    for content in CONTENTS:
        close(derived(run, x.masked_fill(~mask[..., None], content), *decoder.parameters()), want)


def test_a_stack_of_both_directions_reads_left_padding_as_rows_alone() -> None:
    stack = ready(lambda: Stack(READ, (SIZE, 5), bidirectional=True))
    x = normal(ROWS, SOURCE, READ)
    y, finals = stack(x, mask=SCATTERED.int())
    for row in range(ROWS):
        alone, ends = stack(x[row : row + 1, SCATTERED[row]])
        close(y[row, SCATTERED[row]], alone[0])
        close(tree.take(finals, torch.tensor([row])), ends)
        assert not y[row, ~SCATTERED[row]].any()


@pytest.mark.slow  # tests/train/test_compiling.py compiles in `make test`
# torch.compile looks at .grad of every tensor, which warns if the tensor has a history.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_compiled_code_reads_left_padding_too() -> None:
    cell = ready(lambda: CELLS["lstm()"](READ, SIZE))
    x = normal(ROWS, SOURCE, READ)
    compiled = torch.compile(cell, backend="eager")
    close(compiled(x, cell.start(x), SCATTERED), by_hand(cell, x, cell.start(x), SCATTERED))


@pytest.mark.parametrize("name", ["transformer(6)", "bag()", "strided(6)", "pyramid((13,5),True)"])
def test_an_encoder_that_reads_from_the_left_refuses_left_padding(name: str) -> None:
    encoder = ready(partial(ENCODERS[name], READ))
    with pytest.raises(ShapeError, match=r"real positions first, .* pad on the right"):
        encoder(normal(ROWS, SOURCE, READ), SCATTERED)
    memory = encoder(normal(ROWS, SOURCE, READ), source()[1].int())
    assert memory.mask.dtype == torch.bool


@pytest.mark.parametrize("make", [CELLS["lstm()"], CELLS["jordan()"]], ids=["lstm", "jordan"])
@pytest.mark.parametrize("given", [torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_another_dtype_is_refused(make: Make, given: torch.dtype) -> None:
    cell = ready(lambda: make(READ, SIZE), torch.float32)
    x = normal(ROWS, SOURCE, READ, dtype=torch.float32)
    with pytest.raises(
        ShapeError, match=rf"expected x of (torch.float32, .*|floating-point numbers), got {given}"
    ):
        cell(x.to(given), cell.start(x))
    if given.is_floating_point:
        with pytest.raises(ShapeError, match=rf"expected a state of torch.float32, .*, got {given}"):
            cell(x, tree.tree_map(lambda leaf: leaf.to(given), cell.start(x)))
    with pytest.raises(ShapeError, match=r"expected a mask of bool .* got torch.float32"):
        cell(x, cell.start(x), SCATTERED.float())


def test_without_a_mask_all_positions_are_real() -> None:
    x, whole = normal(ROWS, SOURCE, READ), torch.ones(ROWS, SOURCE, dtype=torch.bool)
    for name in one_of_each(ENCODERS):
        encoder = ready(partial(ENCODERS[name], READ))
        close(encoder(x), encoder(x, whole))
    for name in one_of_each(HEADS):
        head = ready(partial(HEADS[name], READ))
        if not head.copies:
            target = head.best(x)
            close(target, head.best(x, whole))
            close(head.loss(x, target).total, head.loss(x, target, whole).total)
            close(head.loss(x, target).count, torch.tensor(ROWS * SOURCE))
    for name in one_of_each(CELLS):
        cell = ready(partial(CELLS[name], READ, SIZE))
        close(cell(x), cell(x, cell.start(x), whole))


def test_a_mask_that_is_false_everywhere_is_refused() -> None:
    x, hidden = normal(ROWS, SOURCE, READ), torch.zeros(ROWS, SOURCE, dtype=torch.bool)
    for name in one_of_each(ENCODERS):
        with pytest.raises(
            ShapeError, match=r"got False everywhere; True is real in Weft's masks, so turn one"
        ):
            ready(partial(ENCODERS[name], READ))(x, hidden)
    memory = BagEncoder(READ)(x, ~hidden)
    for name in one_of_each(DECODERS):
        decoder = ready(partial(DECODERS[name], WRITE, BagEncoder(READ)))
        if decoder.memory_size is not None:
            with pytest.raises(ShapeError, match="got False everywhere"):
                decoder.start(memory._replace(mask=hidden), ROWS)
            with pytest.raises(ShapeError, match=f"expected a memory of {ROWS - 1} rows, got {ROWS}"):
                decoder.start(memory, ROWS - 1)
