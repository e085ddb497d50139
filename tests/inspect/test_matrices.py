"""The view of cells draws the matrix of every head, as the fast path leaves it."""

from functools import partial

import numpy as np
import torch

from tests.diagnose.models import Batch, Reader
from weft.diagnose.reach import seen
from weft.diagnose.recorded import trace
from weft.inspect.views.cells import CellsView, Layer, last_matrices, recorded
from weft.nn.cells.gated_delta import GatedDelta
from weft.nn.cells.gru import GRU
from weft.nn.recurrent import Stack


def batch() -> Batch:
    x = torch.randn(1, 7, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return Batch(x, torch.ones(1, 7, dtype=torch.bool))


def layer_of(stack: Stack) -> Layer:
    (run,) = seen(Reader(stack), batch())
    steps = trace(run)
    labels = [str(n) for n in range(len(steps.states))]
    return Layer(steps.place, "a layer", labels, recorded(steps), last_matrices(steps))


def test_the_matrices_at_the_end_are_those_of_the_fast_path() -> None:
    torch.manual_seed(3)
    stack = Stack(2, (5,), cell=partial(GatedDelta, num_heads=2, key_size=3)).double()
    layer = layer_of(stack)
    with torch.no_grad():
        _, ((state,),) = stack(batch().x)
    np.testing.assert_allclose(layer.matrices, state[1][0], rtol=1e-5, atol=1e-7)
    (drawn,) = [
        block
        for block in CellsView([layer]).blocks()
        if block["kind"] == "matrices" and block["each"] == "head"
    ]
    items = drawn["groups"][0]["items"]
    assert [item["name"] for item in items] == ["S of head 1", "S of head 2"]
    assert items[0]["rows"] == ["key 0", "key 1", "key 2"] and len(items[0]["columns"]) == 3
    assert {"forget_gate", "hidden"} <= set(layer.values)


def test_other_cells_have_no_matrices() -> None:
    layer = layer_of(Stack(2, (5,), cell=GRU).double())
    assert not layer.matrices.size
    assert not [block for block in CellsView([layer]).blocks() if block.get("each") == "head"]
