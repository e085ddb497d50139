"""The weights of the page's heads are those that Weft recorded in the model, and its heads can be read."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.live.pages import expected, in_node, node
from tests.serve.browser import Browser


@node
def test_weights_of_every_head(tmp_path: Path) -> None:
    [[text, wanted]] = expected("heads")
    typed = text.capitalize().replace(" .", ".")
    script = f"(async () => live.parts.heads.look(await live.model('heads'), {json.dumps(typed)}))()"
    found = in_node("heads", script, tmp_path, "heads")
    ours, theirs = np.array(found["weights"]), np.array(wanted)
    assert found["pieces"] == ["⏎", *text.split()]
    assert ours.shape == theirs.shape == (2, 4, len(found["pieces"]), len(found["pieces"]))
    assert np.abs(ours.sum(-1) - 1).max() < 1e-5
    assert (ours == np.tril(ours)).all()  # causal
    assert np.abs(ours - theirs).max() < 0.05  # weights have 8 bits


@node
def test_a_head_reads_the_word_before_and_one_what_followed(tmp_path: Path) -> None:
    [[text, _]] = expected("heads")
    script = f"""(async () => {{
      const {{ look, habit }} = live.parts.heads, net = await live.model('heads');
      const {{ pieces, weights }} = look(net, {json.dumps(text)});
      return weights.map((heads) => heads.map((one) => habit(pieces, one)));
    }})()"""
    first, second = in_node("heads", script, tmp_path, "heads")
    assert max(head["before"] for head in first) > 0.5
    assert max(head["followed"] for head in second) > 0.5


@node
def test_what_a_head_reads_is_counted(tmp_path: Path) -> None:
    script = "live.parts.heads.habit(['⏎', 'a', 'b', 'a'], [[1], [0.25, 0.75], [0, 1, 0], [0, 0, 0.5, 0.5]])"
    found = in_node("heads", script, tmp_path)
    assert np.allclose([found["before"], found["itself"]], [(0.25 + 1 + 0.5) / 3, (0.75 + 0.5) / 3])
    assert found["followed"] == 0.5  # after the first a stands b


def test_a_head_and_a_word_are_chosen(opened: Callable[[str], Browser]) -> None:
    page = opened("heads")
    told = "document.querySelector('.live-told').textContent"
    assert page.run("document.querySelectorAll('.live-heads button').length") == 8
    page.run("document.querySelectorAll('.live-heads button')[5].click()")
    axes = "[...document.querySelectorAll('.live-scroll text')].map((one) => one.textContent)"
    assert page.run(axes)[::2] == page.run(axes)[1::2]  # the words stand at both axes
    assert page.run(axes)[::2][:4] == ["⏎", "the", "first", "page"]
    page.run("document.querySelectorAll('.live-pieces button')[3].focus()")
    assert page.run(told).startswith("Layer 2, head 2: “page” reads ")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("save the file")
    page.wait("document.querySelectorAll('.live-pieces button').length === 4")
    assert "“file” reads" in page.run(told)
