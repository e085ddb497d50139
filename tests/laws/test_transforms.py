"""Cells under torch.func, in other dtypes and copied: what users of torch do with any module."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.laws.members import CELLS, READ, SIZE, Make, cases, close, keeps, near, normal, ready
from weft import masks, tree
from weft.nn.cells.cell import Cell
from weft.nn.cells.orthogonal import Orthogonal
from weft.nn.cells.projected import Projected

ROWS, STEPS = 3, 5
MASK = masks.from_lengths(torch.tensor([5, 1, 3]), STEPS)


def cell_of(make: Make, dtype: torch.dtype = torch.float64) -> Cell:
    return ready(lambda: make(READ, SIZE), dtype)  # type: ignore[no-any-return]


def called(cell: Cell) -> Callable[..., Tensor]:
    """y as a function of parameters, x [B, T, D] and mask."""

    def run(parameters: dict[str, Tensor], x: Tensor, mask: Tensor | None = None) -> Tensor:
        y, _ = torch.func.functional_call(cell, parameters, (x, cell.start(x), mask))
        return y  # type: ignore[no-any-return]

    return run


def gradients_of_each_row_by_vmap_add_up(make: Make) -> None:
    cell, x = cell_of(make), normal(ROWS, STEPS, READ)
    parameters, run = dict(cell.named_parameters()), called(cell)

    def loss(parameters: dict[str, Tensor], x: Tensor, mask: Tensor) -> Tensor:
        return run(parameters, x, mask).square().sum()

    per_row = torch.func.vmap(
        torch.func.grad(lambda p, x, m: loss(p, x[None], m[None])), in_dims=(None, 0, 0)
    )
    want = torch.autograd.grad(loss(parameters, x, MASK), list(parameters.values()), materialize_grads=True)
    for got, wanted in zip(per_row(parameters, x, MASK).values(), want, strict=True):
        close(got.sum(0), wanted)


def forward_derivatives_are_backward_ones(make: Make) -> None:
    cell, x, along = cell_of(make), normal(ROWS, STEPS, READ), normal(ROWS, STEPS, READ, seed=2)
    parameters, run = dict(cell.named_parameters()), called(cell)
    y, moved = torch.func.jvp(lambda x: run(parameters, x), (x,), (along,))
    weights = normal(*y.shape, seed=3)
    back = torch.func.vjp(lambda x: run(parameters, x), x)[1](weights)[0]
    close((weights * moved).sum(), (back * along).sum())


def an_ensemble_in_one_call_is_each_alone(make: Make) -> None:
    cells, x = [cell_of(make), ready(lambda: make(READ, SIZE), seed=4)], normal(ROWS, STEPS, READ)
    if list(cells[0].buffers()):
        return  # which are not stacked here
    stacked, _ = torch.func.stack_module_state(cells)
    ys = torch.func.vmap(lambda parameters: called(cells[0])(parameters, x))(stacked)
    close(tuple(ys), tuple(cell(x, cell.start(x))[0] for cell in cells))


def other_dtypes_are_kept_and_near(make: Make) -> None:
    x, whole = normal(ROWS, STEPS, READ, dtype=torch.float32), cell_of(make, torch.float32)
    want = whole(x, whole.start(x), MASK)[0]
    for dtype, share in ((torch.bfloat16, 0.15), (torch.float16, 0.02), (torch.float64, 1e-5)):
        cell, low = copy.deepcopy(whole).to(dtype), x.to(dtype)
        begin = cell.start(low)
        y, after = cell(low, begin, MASK)
        stepped, next_one = cell.step(low[:, 0], cell.step(low[:, 0], begin)[1])
        assert y.dtype == stepped.dtype == dtype
        for one, *others in zip(*map(tree.leaves, (begin, after, next_one)), strict=True):
            assert all(other.dtype == one.dtype and other.shape == one.shape for other in others)
        near(y.float(), want, share)
        y.float().sum().backward()
        assert all(each.grad is None or each.grad.isfinite().all() for each in cell.parameters())


def copies_are_equal(make: Make) -> None:
    cell, x = cell_of(make), normal(ROWS, STEPS, READ)
    copies = [copy.deepcopy(cell)]
    if not isinstance(cell, Orthogonal | Projected):  # torch refuses to pickle parametrizations
        copies.append(pickle.loads(pickle.dumps(cell)))
    for other in copies:
        close(other(x, other.start(x)), cell(x, cell.start(x)), 0.0)


@cases(CELLS)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own rules of jvp
@pytest.mark.filterwarnings(
    "ignore:There is a performance drop because we have not yet implemented the batching"
)
def test_a_cell_is_a_module_of_torch(make: Make) -> None:
    keeps(
        [
            gradients_of_each_row_by_vmap_add_up,
            forward_derivatives_are_backward_ones,
            an_ensemble_in_one_call_is_each_alone,
            other_dtypes_are_kept_and_near,
            copies_are_equal,
        ],
        make,
    )
