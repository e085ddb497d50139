"""The page's product of factors is the gradient that torch computes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.live.pages import in_node, node
from tests.serve.browser import Browser


@node
@pytest.mark.parametrize("tanh", [True, False])
@pytest.mark.parametrize("weight", [0.9, 1.3])
def test_products_are_gradients(weight: float, tanh: bool, tmp_path: Path) -> None:
    states = [torch.tensor(0.7, dtype=torch.float64, requires_grad=True)]
    for _ in range(11):
        states.append((weight * states[-1]).tanh() if tanh else weight * states[-1])
    wanted = [float(one) for one in torch.autograd.grad(states[-1], states)]
    script = f"live.parts.reach.products({weight}, 11, {{ tanh: {str(tanh).lower()}, start: 0.7 }})"
    assert in_node("reach", script, tmp_path)[::-1] == pytest.approx(wanted, rel=1e-10)


@node
def test_a_gradient_is_told_with_three_digits(tmp_path: Path) -> None:
    values = "[0, 0.00515377, 1, 1670.7, 1.3 ** 50, 0.5 ** 50]"
    wanted = ["0", "0.00515", "1", "1,670", "4.98 · 10⁵", "8.88 · 10⁻¹⁶"]
    assert in_node("reach", f"{values}.map(live.parts.reach.shown)", tmp_path) == wanted


def test_the_weight_moves_the_curve(opened: Callable[[str], Browser]) -> None:
    page = opened("reach")
    told = "document.querySelector('.live-told').textContent"
    page.run("[...document.querySelectorAll('.live-choice input')].at(-1).click()")
    assert page.run(told).startswith("Over the distance 50 the gradient shrinks to 0.00515.")  # 0.9 ** 50
    page.run("document.querySelector('.live-slider input').focus()")
    for _ in range(20):
        page.press("ArrowRight", 39)
    assert page.run(told).startswith("Over the distance 50 the gradient grows to 4.98 · 10⁵.")  # 1.3 ** 50
    assert page.run("document.querySelectorAll('.live-lines path[stroke]').length") == 6
    page.run("document.querySelectorAll('.live-slider input')[0].focus()")
    page.press("Home", 36)
    assert page.run(told).startswith("Over the distance 50 the gradient shrinks to 0.")  # weight 0
