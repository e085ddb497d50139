"""The page's n-grams are Weft's Kneser-Ney, and both models of letters answer what is typed."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.live.pages import in_node, node
from tests.serve.browser import Browser
from weft.ngram.kneser_ney import kneser_ney

TEXT = (
    "click the button to open the file. the file is then shown, and the button is closed again. " * 2
    + "zoom!"
)


@node
@pytest.mark.parametrize("order", [1, 2, 4])
def test_probabilities_of_the_next_letter(order: int, tmp_path: Path) -> None:
    letters = sorted(set(TEXT))
    tokens = np.array([len(letters), *(letters.index(letter) for letter in TEXT)])
    model = kneser_ney(tokens, size=len(letters) + 1, order=order, start=len(letters))
    before = ["", "th", "the f", "xyz", "zoom!"]
    script = f"(({{ letters, probs }}) => {json.dumps(before)}.map((one) => [letters, probs(one)]))"
    script += f"(live.parts.letters.kneserNey({json.dumps(TEXT)}, {order}))"
    for text, (names, probs) in zip(before, in_node("letters", script, tmp_path), strict=True):
        assert names == letters and sum(probs) == pytest.approx(1, abs=1e-9)
        past = [len(letters), *(letters.index(one) if one in letters else -1 for one in text)]
        row = np.array([past[-(order - 1) :] if order > 1 else []], np.int64)
        wanted = np.exp(model.distribution(row))[0, : len(letters)]
        if "x" not in text:
            assert probs == pytest.approx(wanted.tolist(), abs=1e-9), text


@node
def test_a_space_at_the_end_counts(tmp_path: Path) -> None:
    script = """(async () => {
      const net = live.parts.letters.exact(await live.model('letters-lstm'));
      return ['Click the ', 'Click the'].map((text) => net.next(text).pieces[0]);
    })()"""
    after, before = in_node("letters", script, tmp_path, "letters-lstm")
    assert after.isalpha() and before == "▁"


def test_typing_and_writing(opened: Callable[[str], Browser]) -> None:
    page = opened("letters")
    rows = "document.querySelectorAll('.live-bars')[{}].rows[0].textContent"
    page.run("document.querySelector('.live-stage textarea').select()")
    page.type("Click the butto")
    assert [page.run(rows.format(side))[0] for side in (0, 1)] == ["n", "n"]
    page.run("document.querySelectorAll('.live-slider input')[2].focus()")
    page.press("ArrowRight", 39)  # top-k of 1: the likeliest letter alone
    assert page.run(rows.format(1)) == "n1.000"
    page.run("document.querySelector('.live-button').click()")
    page.wait("[...document.querySelectorAll('.live-said')].every((one) => one.textContent.length > 100)")
    said = page.run("[...document.querySelectorAll('.live-said')].map((one) => one.textContent)")
    assert all(one.startswith("Click the button") for one in said)
