"""The page's encoder-decoders answer as `weft predict` did, and show where they break."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.pages import expected, in_node, node
from tests.serve.browser import Browser
from tests.slow import leading


@node
@pytest.mark.parametrize("enters", leading(["input", "never", "late"]))
def test_answers(enters: str, tmp_path: Path) -> None:
    given = expected(f"reverse-{enters}")
    texts = [source.split() for source, _ in given]
    script = f"""(async () => {{
      const net = await live.model('reverse-{enters}'), found = [];
      for (const text of {json.dumps(texts)}) found.push(await live.parts.reverse.answer(net, text));
      return found;
    }})()"""
    found = in_node("reverse", script, tmp_path, f"reverse-{enters}")
    same = [one["written"] == wanted.split() for one, (_, wanted) in zip(found, given, strict=True)]
    assert sum(same) >= 0.9 * len(same)  # weights have 8 bits
    for letters, one in zip(texts, found, strict=True):
        for row in one["attention"] or ():
            assert len(row) == len(letters) and sum(row) == pytest.approx(1, abs=1e-4)
    assert (found[0]["attention"] is None) == (enters == "never")


def test_short_strings_are_right_and_long_ones_break(opened: Callable[[str], Browser]) -> None:
    page = opened("reverse")
    verdicts = (
        "[...document.querySelectorAll('.live-stage td:last-child')].map((one) => one.textContent).slice(1)"
    )
    page.run("document.querySelector('.live-slider input').focus()")
    page.press("Home", 36)
    page.wait("document.querySelector('.live-mono').textContent.length === 3")
    assert page.run(verdicts)[2] == "right"
    page.press("End", 35)
    page.wait("document.querySelector('.live-mono').textContent.length === 16")
    assert page.run(verdicts)[0] != "right"
    assert page.run("document.querySelectorAll('.live-stage svg rect').length") > 100
