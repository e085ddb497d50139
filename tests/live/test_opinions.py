"""A bag of words judges all orders of a sentence alike; an LSTM tells who liked it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.pages import DOCS, expected, in_node, node
from tests.serve.browser import Browser


@node
@pytest.mark.parametrize("kind", ["bag", "lstm"])
def test_labels(kind: str, tmp_path: Path) -> None:
    given = expected(f"opinions-{kind}")
    script = f"""(async () => {{
      const net = await live.model('opinions-{kind}'), found = [];
      for (const text of {json.dumps([text for text, _ in given])}) found.push((await net.answer(text)).text);
      return found;
    }})()"""
    assert in_node("opinions", script, tmp_path, f"opinions-{kind}") == [label for _, label in given]


@node
def test_words_as_they_were_in_training(tmp_path: Path) -> None:
    script = "live.parts.opinions.split('I liked it, I did not see all of it.')"
    assert in_node("opinions", script, tmp_path) == "i liked it , i did not see all of it"


@node
def test_unknown_words_and_an_empty_box_get_an_answer(tmp_path: Path) -> None:
    script = """(async () => {
      const [bag, lstm] = [await live.model('opinions-bag'), await live.model('opinions-lstm')];
      const texts = ['', ' , ', 'xyzzy', 'The film was good, not bad.'], { judged } = live.parts.opinions;
      return Promise.all(texts.map((text) => judged({ bag, lstm }, text)));
    })()"""
    empty, comma, unknown, partly = in_node("opinions", script, tmp_path, "opinions-bag", "opinions-lstm")
    assert (empty["words"], comma["words"], unknown["words"], unknown["unknown"]) == (
        None,
        None,
        None,
        ["xyzzy"],
    )
    assert (partly["words"], partly["unknown"]) == ("was good , not bad", ["the", "film"])


def test_only_the_order_of_the_words_tells_the_class() -> None:
    sys.path.insert(0, str(DOCS / "live"))
    try:
        from recipes import opinions
    finally:
        sys.path.pop(0)
    for line in (opinions(0, 0), opinions(1, 5)):
        bags = {
            label: sorted(sorted(text.split()) for own, text in line if own == label) for label, _ in line
        }
        assert bags["liked"] == bags["disliked"]


def test_the_same_words_in_another_order(opened: Callable[[str], Browser]) -> None:
    page = opened("opinions")
    shares = (
        "[...document.querySelectorAll('.live-bars td:last-child')].map((one) => parseInt(one.textContent))"
    )
    bag, lstm, sorted_bag, _ = page.run(shares)
    assert abs(bag - 50) <= 5 and bag == sorted_bag and lstm > 90
    page.run("document.querySelectorAll('.live-button')[1].click()")
    page.wait("document.querySelector('.live-stage p').textContent.includes('bad , not good')")
    assert abs(page.run(shares)[0] - bag) <= 1 and page.run(shares)[1] < 10
    page.run("document.querySelector('.live-stage input').select()")
    page.type("xyzzy")
    page.wait("document.querySelector('.live-stage').textContent.includes('do not know it: xyzzy')")
    assert page.run(shares) == []
