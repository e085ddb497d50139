"""The page's positions are Weft's, and its sliders move them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.live.pages import in_node, node
from tests.serve.browser import Browser
from weft.nn.distances import Rotary, turned
from weft.nn.positions import sinusoid


@node
@pytest.mark.parametrize("base", [10.0, 10000.0])
def test_the_table_and_the_angles(base: float, tmp_path: Path) -> None:
    found = in_node(
        "positions", f"[0, 3, 41].map((t) => live.parts.positions.sinusoid(t, 12, {base}))", tmp_path
    )
    assert torch.tensor(found).allclose(sinusoid(torch.tensor([0, 3, 41]), 12, base=base), atol=1e-6)
    torch.manual_seed(2)
    x = torch.randn(10, dtype=torch.float64)
    script = f"[0, 3, 41].map((t) => live.parts.positions.turned({x.tolist()}, t, {base}))"
    order = Rotary(10, base=base)(torch.tensor([0, 3, 41]), torch.tensor([0, 3, 41]), x)
    wanted = turned(x.expand(1, 1, 3, 10), order.turn)[0, 0]
    assert torch.tensor(in_node("positions", script, tmp_path), dtype=torch.float64).allclose(
        wanted, atol=1e-10
    )


@node
def test_the_energy_depends_on_the_distance_alone(tmp_path: Path) -> None:
    pairs = "[[3, 5], [103, 105], [3, 6]]"
    script = f"{pairs}.map(([t, s]) => live.parts.positions.energy([1, 2, 3, 4], [2, 0, 1, 1], t, s, 10000))"
    near, far, other = in_node("positions", script, tmp_path)
    assert near == pytest.approx(far, abs=1e-10) and abs(near - other) > 0.01


def test_sliders_move_the_table_and_the_hands(opened: Callable[[str], Browser]) -> None:
    page = opened("positions")
    told, energy = (f"document.querySelector('.{name}').textContent" for name in ("live-told", "live-energy"))
    assert page.run(told).startswith("Position 3, feature 4: sin(3 · 0.316) = 0.813.")
    page.run("document.querySelectorAll('.live-slider input')[2].focus()")
    for _ in range(3):
        page.press("ArrowLeft", 37)  # base 10,000 to 10
    assert page.run(told).startswith("Position 3, feature 4: sin(3 · 0.750) = 0.778.")
    before = page.run(energy).partition(": ")[2]
    page.run("[...document.querySelectorAll('.live-button')].at(-1).click()")
    assert page.run(energy) == f"Energy of query at 4 and key at 6, distance 2: {before}"
