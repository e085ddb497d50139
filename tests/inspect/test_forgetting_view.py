"""The view of forgetting draws what was measured: decays, half-lives, eigenvalues, and matrices over time."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from tests.diagnose.models import Batch, Reader
from weft.diagnose.reach import seen
from weft.diagnose.recorded import trace
from weft.inspect.views.forgetting import ForgettingCurve, ForgettingView, layer_of
from weft.inspect.views.gradients import _depends
from weft.inspect.views.view import Block, plain
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gated_delta import GatedDelta
from weft.nn.cells.lru import LRU
from weft.nn.cells.retention import Retention
from weft.nn.cells.rglru import RGLRU
from weft.nn.recurrent import Stack

STEPS = 11


def batch() -> Batch:
    x = torch.randn(1, STEPS, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return Batch(x, torch.ones(1, STEPS, dtype=torch.bool))


def stack_of(kind: Callable[[int, int], Cell], *, from_end: bool = False) -> Stack:
    torch.manual_seed(3)
    stack = Stack(2, (5,), cell=kind).double()
    stack.from_end = from_end
    return stack


def drawn(stack: Stack) -> ForgettingCurve | None:
    (run,) = seen(Reader(stack), batch())
    return layer_of(trace(run), "a layer", [f"word {n}" for n in range(STEPS)])


def only(view: ForgettingView, kind: str, each: str = "") -> list[Block]:
    return [block for block in view.page() if block["kind"] == kind and block.get("each", "") == each]


def test_the_matrices_are_those_of_the_fast_path_at_every_drawn_position() -> None:
    stack = stack_of(partial(GatedDelta, num_heads=2, key_size=3))
    layer = drawn(stack)
    assert layer is not None and layer.times[0] == 0 and layer.times[-1] == STEPS - 1
    for t, matrices in zip(layer.times, layer.matrices, strict=True):
        with torch.no_grad():
            _, ((state,),) = stack(batch().x[:, : t + 1])
        np.testing.assert_allclose(matrices, state[1][0], rtol=1e-5, atol=1e-7)
    (block,) = only(ForgettingView([layer]), "matrices", "position")
    assert [group["name"] for group in block["groups"]] == ["a layer, head 1", "a layer, head 2"]
    item = block["groups"][1]["items"][0]
    assert item["name"] == f"after {STEPS}: word {STEPS - 1}" and item["low"] == -item["high"] < 0
    assert item["rows"] == ["key 0", "key 1", "key 2"] and len(item["columns"]) == 3
    np.testing.assert_array_equal(item["values"], layer.matrices[-1, 1])


def test_decays_that_depend_on_the_input_are_a_heat_map_slowest_first() -> None:
    layer = drawn(stack_of(RGLRU))
    assert layer is not None
    view = ForgettingView([layer])
    (block,) = only(view, "matrices", "factor")
    (item,) = block["groups"][0]["items"]
    slowest = int(layer.half_lives.argmax())
    assert item["rows"][0] == f"channel {slowest}"
    np.testing.assert_allclose(item["values"][0], layer.eigenvalues[:, slowest], rtol=1e-6)
    assert not only(view, "plane") and not only(view, "matrices", "position")


def test_complex_eigenvalues_are_drawn_in_the_plane_and_constant_ones_not_over_time() -> None:
    stack = stack_of(LRU)
    layer = drawn(stack)
    assert layer is not None
    view = ForgettingView([layer])
    (plane,) = only(view, "plane")
    cell = stack.forwards[0]
    expected = torch.exp(torch.complex(-cell.nu.exp(), cell.theta.exp())).detach().numpy()
    np.testing.assert_allclose(np.sort_complex(plane["x"] + 1j * plane["y"]), np.sort_complex(expected))
    assert not only(view, "matrices", "factor")
    rows = [row for row in view.table() if row[1] == "eigenvalue"]
    assert len(rows) == STEPS * 5 and rows[0][4] + 1j * rows[0][5] == layer.eigenvalues[0, 0]


def test_a_backward_layer_is_drawn_in_the_order_of_positions() -> None:
    layer = drawn(stack_of(partial(Retention, num_heads=2), from_end=True))
    assert layer is not None
    np.testing.assert_allclose(layer.kept[:, 1], (63 / 64) ** np.arange(STEPS), rtol=1e-12)
    assert layer.times[-1] == 0 and layer.times[0] == STEPS - 1


def test_the_verdict_and_the_half_lives_stand_on_the_page() -> None:
    layer = drawn(stack_of(partial(Retention, num_heads=2)))
    assert layer is not None
    view = ForgettingView([layer])
    words = [block["text"] for block in only(view, "text")]
    assert f"A layer: {layer.verdict.sentence.split(': ', 1)[1]}." in words
    (table,) = only(view, "table")
    assert table["rows"] == [["a layer", "2 channels", "22 steps", "22 steps", "44 steps"]]
    assert plain(view.json()) and view.figure().axes
    assert drawn(stack_of(Elman)) is None


def test_the_words_on_the_last_output_follow_from_its_gradient() -> None:
    assert "reaches 2 of 4 steps back" in _depends(np.array([1e-9, 0.009, 0.02, 1.0, 0.5]))
    assert "all 3 positions" in (said := _depends(np.array([0.25, 0.5, 1.0]))) and "25.0%" in said
    assert "does not depend" in _depends(np.zeros(3))
