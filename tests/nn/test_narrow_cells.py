"""Recurrent layers under bfloat16 autocast: compiled in bfloat16, or in float32 where that is faster."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.test_cells_kernel import call, inputs, mask_of
from tests.nn.ways import needs_narrow, needs_native, on_threads
from weft.errors import ConfigError
from weft.native import jobs
from weft.nn.cells.gru import GRU
from weft.nn.kernels import choice

SHAPES = [(1, 7, 5, 67), (3, 7, 7, 13), (5, 7, 3, 13), (23, 7, 131, 17), (40, 7, 20, 48), (2, 7, 1, 1)]


def under_autocast(cell: str, given: list[Tensor], mask: Tensor | None, way: Any) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", torch.bfloat16):
        return call(cell, given, mask, way)


@needs_narrow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cell", jobs.CELLS)
def test_rounded_numbers_are_multiplied_exactly(cell: str, shape: tuple[int, int, int, int]) -> None:
    rows, _, read, size = shape
    given = [t.bfloat16().double() for t in inputs(cell, (rows, 1, read, size), torch.float64)]
    found = under_autocast(cell, [t.float() for t in given], None, "narrow")
    close(tuple(t.double() for t in found), call(cell, given, None, "steps"), 2e-5)


@needs_narrow
@pytest.mark.parametrize("lengths", [None, [7, 4, 1, 6, 2], [3, 0, 7, 0, 5]], ids=str)
@pytest.mark.parametrize("cell", jobs.CELLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_are_near_those_of_the_loop(cell: str, lengths: list[int] | None, threads: int) -> None:
    with on_threads(threads):
        rows = 29 if lengths is None else 5
        given = [0.2 * t for t in inputs(cell, (rows, 7, 31, 37), torch.float32)]
        found, want = (
            grads(cell, given, mask_of(lengths), way, low)
            for way, low in (("narrow", True), ("steps", False))
        )
        for ours, exact in zip(found, want, strict=True):
            assert ours.dtype == torch.float32
            assert float((ours - exact).norm()) <= 0.02 * float(exact.norm()) + 1e-6


def grads(cell: str, given: list[Tensor], mask: Tensor | None, way: Any, low: bool) -> list[Tensor]:
    """Results and gradients of a random combination of them."""
    leaves = [t.clone().requires_grad_() for t in given]
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        outs = call(cell, leaves, mask, way)
    total = sum((normal(*o.shape, seed=k) * o).sum() for k, o in enumerate(outs))
    return [*(o.detach() for o in outs), *torch.autograd.grad(total, leaves)]


@needs_native
@pytest.mark.parametrize("cell", jobs.CELLS)
def test_in_float32_autocast_changes_nothing(cell: str) -> None:
    given, mask = inputs(cell, (5, 7, 3, 13), torch.float32), mask_of([7, 4, 1, 6, 2])
    low, plain = (tuple(grads(cell, given, mask, "native", low=on)) for on in (True, False))
    close(low, plain, 0.0)


@needs_native
@pytest.mark.parametrize("steps", [1, 3, 7])
@pytest.mark.parametrize("cell", jobs.CELLS)
def test_a_state_without_gradient_leaves_the_others_right(cell: str, steps: int) -> None:
    given = [0.3 * t for t in inputs(cell, (3, steps, 5, 19), torch.float32)]
    states = 2 if given[2].dim() == 2 and given[2].shape == given[1].shape else 1
    found = []
    for way, dtype in (("native", torch.float32), ("steps", torch.float64)):
        leaves = [t.to(dtype).requires_grad_(not 1 <= k <= states) for k, t in enumerate(given)]
        y = call(cell, leaves, None, way)[0]
        found.append(torch.autograd.grad(y.square().sum(), [t for t in leaves if t.requires_grad]))
    close(tuple(t.double() for t in found[0]), found[1], 2e-5)


@needs_narrow
def test_bfloat16_is_forced_only_under_autocast() -> None:
    cell, x = GRU(3, 5), torch.zeros(2, 9, 3)
    with choice.use(cells="narrow"), pytest.raises(ConfigError, match="only under autocast"):
        cell(x, cell.start(x))
