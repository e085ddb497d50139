"""The weights of the page's heads are those that Weft recorded in the model."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.live.pages import expected, in_node, node
from tests.serve.browser import Browser


@node
def test_weights_of_every_head(tmp_path: Path) -> None:
    [[text, wanted]] = expected("heads")
    script = f"(async () => live.parts.heads.look(await live.model('heads'), {json.dumps(text)}))()"
    found = in_node("heads", script, tmp_path, "heads")
    ours, theirs = np.array(found["weights"]), np.array(wanted)
    assert found["pieces"] == ["<s>", *text.split(), "</s>"]
    assert ours.shape == theirs.shape == (2, 4, len(found["pieces"]), len(found["pieces"]))
    assert np.abs(ours.sum(-1) - 1).max() < 1e-5
    assert np.abs(ours - theirs).max() < 0.05  # weights have 8 bits


def test_a_head_and_a_word_are_chosen(opened: Callable[[str], Browser]) -> None:
    page = opened("heads")
    told = "document.querySelector('.live-told').textContent"
    assert page.run("document.querySelectorAll('.live-heads button').length") == 8
    page.run("document.querySelectorAll('.live-heads button')[5].click()")
    page.run("document.querySelectorAll('.live-pieces button')[3].focus()")
    assert page.run(told).startswith("Layer 2, head 2: “button” reads ")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("save the file")
    page.wait("document.querySelectorAll('.live-pieces button').length === 5")
    assert "“file” reads" in page.run(told)
