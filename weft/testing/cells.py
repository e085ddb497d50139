"""The laws of a recurrent cell; `check_cell` runs them over a cell of your own.

Read next: scores.py, metrics.py.
"""

import itertools
from collections.abc import Callable

import torch
from safetensors.torch import load, save
from torch import Tensor

from weft import probe, tree
from weft.nn.cells.cell import Cell
from weft.testing.values import (
    READ,
    ROWS,
    SIZE,
    SOURCE,
    SOURCE_LENGTHS,
    close,
    every_parameter_reached,
    gradcheck,
    keeps,
    normal,
    ready,
    source,
)
from weft.tree import State

Make = Callable[..., Cell]


def check_cell(make: Make) -> None:
    """Check that a cell keeps the laws that every cell of Weft keeps.

    One call over T steps equals T calls of one step; padding changes nothing; rows are independent; the state
    after a masked prefix is that after the prefix; gradients are right and reach every parameter; a faster
    `run` equals the loop; later inputs change no earlier output; saved and loaded it gives the same.

    Args:
        make: the class, or a function of in_size and size that builds the cell with its settings.

    Raises:
        AssertionError: names the laws that are broken, and where the first one is.

    Example:
        >>> from weft.nn.cells import GRU
        >>> check_cell(GRU)
    """
    keeps(LAWS, make)


def cell_of(make: Make, dtype: torch.dtype = torch.float64) -> Cell:
    """A cell with random weights."""
    return ready(lambda: make(READ, SIZE), dtype)


def middle(cell: Cell, dtype: torch.dtype = torch.float64) -> State:
    """A state after a few steps."""
    state = cell.start(torch.zeros(ROWS, 1, dtype=dtype))
    for t in range(3):
        state = cell.step(normal(ROWS, READ, seed=20 + t, dtype=dtype), state)[1]
    return state


def law_1_one_call_equals_steps(make: Make) -> None:
    """Law 1: one call equals steps."""
    cell = cell_of(make)
    for steps in (1, SOURCE):
        x = normal(ROWS, steps, READ)
        for state in (cell.start(x), middle(cell)):
            whole, last = cell(x, state)
            for t in range(steps):
                y, state = cell.step(x[:, t], state)
                close(whole[:, t], y)
            close(last, state)


def law_2_a_row_alone_equals_the_row_in_a_batch_and_law_3_masked_prefix(make: Make) -> None:
    """Law 2 and 3: a row alone equals the row in a batch, and padding changes nothing."""
    cell = cell_of(make)
    x, mask = source()
    before = middle(cell)
    y, after = cell(x, before, mask)
    longer = torch.cat([x, torch.full((ROWS, 4, READ), -50.0, dtype=x.dtype)], 1)
    padded = torch.cat([mask, torch.zeros(ROWS, 4, dtype=torch.bool)], 1)
    more, after_more = cell(longer, before, padded)
    close(more[:, :SOURCE], y)
    close(after_more, after)
    for row, length in enumerate(SOURCE_LENGTHS):
        here = torch.tensor([row])
        alone, end = cell(x[row : row + 1, :length], tree.take(before, here))
        close(y[row : row + 1, :length], alone)
        close(tree.take(after, here), end)
        assert not y[row, length:].any()


def law_3_a_row_without_any_real_position_keeps_its_state(make: Make) -> None:
    """Law 3: a row without any real position keeps its state."""
    cell = cell_of(make)
    x, mask = source()
    mask[3] = False
    before = middle(cell)
    _, after = cell(x, before, mask)
    row = torch.tensor([3])
    close(tree.take(after, row), tree.take(before, row), 0.0)


def law_4_chosen_rows_of_a_step(make: Make) -> None:
    """Law 4: chosen rows of a step."""
    cell = cell_of(make)
    rows = torch.tensor([4, 1, 1, 0, 3, 3, 2])
    x, state = normal(ROWS, READ), middle(cell)
    y, after = cell.step(x, state)
    chosen, after_chosen = cell.step(x[rows], tree.take(state, rows))
    close(chosen, y[rows])
    close(after_chosen, tree.take(after, rows))


def law_5_gradcheck_and_gradients_reach_every_parameter(make: Make, masked: bool = True) -> None:
    """Law 5: gradcheck and gradients reach every parameter."""
    cell = cell_of(make)
    x, mask = source() if masked else (normal(ROWS, SOURCE, READ), None)
    x, mask = x[1:3, :4], None if mask is None else mask[1:3, :4]
    before = [leaf[:2] for leaf in tree.leaves(middle(cell))]

    def outputs(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        begin = iter(rest)
        y, after = cell(x, tree.tree_map(lambda _: next(begin), cell.start(x)), mask)
        return y, *tree.leaves(after)

    gradcheck(cell, outputs, x, *before)
    every_parameter_reached(cell, outputs(x, *before))


def law_7_fast_kernel_equals_plain_loop(make: Make) -> None:
    """Law 7: fast kernel equals plain loop."""
    if type(cell_of(make)).run is not Cell.run:
        for dtype in (torch.float64, torch.float32):
            fast_kernel_equals_plain_loop(make, dtype, masked=False, where="start")
            fast_kernel_equals_plain_loop(make, dtype, masked=True, where="middle")


def fast_kernel_equals_plain_loop(make: Make, dtype: torch.dtype, masked: bool, where: str) -> None:
    """`run` gives what the loop over `step` gives, and the same gradients."""
    tolerance = 1e-10 if dtype == torch.float64 else 2e-5  # kernels add up in another order than a loop
    cell = cell_of(make, dtype)
    x, mask = source(dtype) if masked else (normal(ROWS, SOURCE, READ, dtype=dtype), None)
    begin = middle(cell, dtype) if where == "middle" else cell.start(x)
    with torch.no_grad():  # oneDNN uses other code in evaluation than in training
        pairs = [(cell(x, begin, mask), Cell.run(cell, x, begin, mask))]
    gradients = []
    for run in (cell, lambda *inputs: Cell.run(cell, *inputs)):
        read = x.clone().requires_grad_()
        state = tree.tree_map(lambda leaf: leaf.detach().clone().requires_grad_(), begin)
        y, after = run(read, state, mask)
        ends = [y, *tree.leaves(after)]
        total = sum((normal(*end.shape, seed=k, dtype=dtype) * end).sum() for k, end in enumerate(ends))
        wanted = [read, *tree.leaves(state), *cell.parameters()]
        gradients.append((*ends, *torch.autograd.grad(total, wanted, materialize_grads=True)))  # type: ignore[arg-type]
    pairs += zip(*gradients, strict=True)
    flat = [zip(tree.leaves(one), tree.leaves(other), strict=True) for one, other in pairs]
    for one, other in itertools.chain(*flat):  # relative to the largest, as sums may cancel
        close(one, other, tolerance * max(1.0, float(other.detach().abs().max())))


def law_9_what_comes_later_changes_nothing_before(make: Make) -> None:
    """Law 9: what comes later changes nothing before."""
    cell = cell_of(make)
    x = normal(ROWS, SOURCE, READ)
    other = x.clone()
    other[:, 4:] += 1
    y, z = cell(x, cell.start(x))[0], cell(other, cell.start(x))[0]
    assert torch.equal(y[:, :4], z[:, :4])
    assert not torch.isclose(y[:, 4:], z[:, 4:]).all()


def law_10_saved_and_loaded_gives_the_same(make: Make) -> None:
    """Law 10: saved and loaded gives the same."""
    cell, other = cell_of(make), ready(lambda: make(READ, SIZE), seed=4)
    other.load_state_dict(load(save(cell.state_dict())))
    x = normal(ROWS, SOURCE, READ)
    close(other(x, middle(other)), cell(x, middle(cell)), 0.0)


def a_probe_changes_nothing(make: Make) -> None:
    """A probe changes nothing."""
    cell = cell_of(make)
    x, mask = source()
    with probe.probe():
        seen = cell(x, middle(cell), mask)
    close(seen, cell(x, middle(cell), mask))


def its_shapes_and_what_it_shows(make: Make) -> None:
    """Its shapes and what it shows."""
    cell = cell_of(make)
    x = normal(ROWS, SOURCE, READ)
    y, state = cell(x, cell.start(x))
    assert y.shape == (ROWS, SOURCE, SIZE)
    assert all(leaf.shape[0] == ROWS and leaf.dtype == x.dtype for leaf in tree.leaves(state))
    close(cell.shown(state), y[:, -1])


LAWS = [
    law_1_one_call_equals_steps,
    law_2_a_row_alone_equals_the_row_in_a_batch_and_law_3_masked_prefix,
    law_3_a_row_without_any_real_position_keeps_its_state,
    law_4_chosen_rows_of_a_step,
    law_5_gradcheck_and_gradients_reach_every_parameter,
    law_7_fast_kernel_equals_plain_loop,
    law_9_what_comes_later_changes_nothing_before,
    law_10_saved_and_loaded_gives_the_same,
    a_probe_changes_nothing,
    its_shapes_and_what_it_shows,
]
