"""Attention by hand computes what `weft.nn.Attention` does, and follows mouse and keys."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.live.pages import in_node, node
from tests.serve.browser import Browser
from weft.nn.attention import Attention
from weft.nn.encoders.encoder import Memory
from weft.nn.scores import Dot, ScaledScore
from weft.probe import probe


@node
@pytest.mark.parametrize("scaled", [False, True])
def test_weights_and_context(scaled: bool, tmp_path: Path) -> None:
    torch.manual_seed(3)
    states, query = torch.randn(1, 5, 7, dtype=torch.float64), torch.randn(1, 1, 7, dtype=torch.float64)
    attention = Attention((ScaledScore if scaled else Dot)(7, 7), 7).double()
    memory = Memory(states, torch.ones(1, 5) > 0, states[:, -1])
    with probe() as seen:
        context = attention(query, attention.prepare(memory))
    asked = f"{json.dumps(query[0, 0].tolist())}, {json.dumps(states[0].tolist())}, {json.dumps(scaled)}"
    found = in_node("attention", f"live.parts.attention.attend({asked})", tmp_path)
    assert found["weights"] == pytest.approx(seen["attention"][0].flatten().tolist(), abs=1e-10)
    assert found["context"] == pytest.approx(context.flatten().tolist(), abs=1e-10)


@node
def test_random_features_have_the_variance_of_the_sentence(tmp_path: Path) -> None:
    script = "live.parts.attention.drawn(1, 512, 8).keys.flat()"
    values = torch.tensor(in_node("attention", script, tmp_path))
    assert values.mean().abs() < 0.05 and abs(values.var() - 1) < 0.05


def test_arrows_follow_keys_and_mouse(opened: Callable[[str], Browser]) -> None:
    page = opened("attention")
    context = "document.querySelector('.live-context').textContent"
    assert page.run(context) == "context c = (1.575, 0.425)"  # by hand, in the chapter
    page.run("document.querySelector('[aria-label=query]').focus()")
    ring = "document.querySelector('[aria-label=query] circle:last-child')"
    drawn = "(({ stroke, strokeWidth, vectorEffect }) => [stroke, strokeWidth, vectorEffect])"
    drawn += f"(getComputedStyle({ring}))"
    page.press("ArrowLeft", 37)
    page.press("ArrowRight", 39)
    assert page.run(drawn)[0] != "none" and page.run(drawn)[1:] == ["3px", "non-scaling-stroke"]
    handle = "getComputedStyle(document.querySelector('[aria-label=query]'))"
    assert page.run(f"{handle}.outlineStyle") == "none"  # it would be in units of the drawing
    for key, code in [("ArrowLeft", 37), ("ArrowUp", 38)] * 10:
        page.press(key, code)
    assert page.run("document.querySelector('[aria-label=query]').ariaValueText") == "0.00, 1.00"
    assert page.run(context) == "context c = (0.425, 1.575)"  # the mirror image
    box = page.run(
        """(() => { const of = (name) => document.querySelector(name).getBoundingClientRect();
        const b = of('[aria-label=query] circle');
        return [b.x + b.width / 2, b.y + b.height / 2, of('.live-stage svg').width]; })()"""
    )
    where = {"button": "left", "clickCount": 1}
    page.send("Input.dispatchMouseEvent", type="mousePressed", x=box[0], y=box[1], **where)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1] + box[2] / 6.6, **where)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", x=box[0], y=box[1] + box[2] / 6.6, **where)
    assert page.run("document.querySelector('[aria-label=query]').ariaValueText") == "0.00, 0.00"
    assert page.run(context) == "context c = (1.000, 1.000)"  # equal weights: the mean of the states
