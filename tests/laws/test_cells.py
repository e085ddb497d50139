"""The laws of a recurrent cell, for every file of weft/nn/cells; weft/testing/cells.py states them."""

import torch

from tests.laws.members import CELLS, Make, cases, near, others, source
from weft import tree
from weft.testing import check_cell
from weft.testing.cells import (
    cell_of,
    law_1_one_call_equals_steps,
    law_7_fast_kernel_equals_plain_loop,
)
from weft.testing.values import every_parameter_reached, keeps

every_cell = cases(CELLS)


@every_cell
def test_bfloat16_autocast_stays_near_float32(make: Make) -> None:
    cell = cell_of(make, torch.float32)
    x, ragged = source(torch.float32)
    for mask in (None, ragged):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y, state = cell(x, cell.start(x), mask)
        want, last = cell(x, cell.start(x), mask)
        near(y.float(), want, 0.15)  # bfloat16: relative error 1/256 per operation, dozens in a row
        for got, wanted in zip(tree.leaves(state), tree.leaves(last), strict=True):
            near(got.float(), wanted, 0.1)
        every_parameter_reached(cell, (y.float(), state))


@every_cell
def test_a_cell_keeps_the_laws(make: Make) -> None:
    check_cell(make)


@others(CELLS)
def test_settings_change_the_equation_alike_in_all_code(make: Make) -> None:
    keeps([law_1_one_call_equals_steps, law_7_fast_kernel_equals_plain_loop], make)
