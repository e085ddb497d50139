"""A bag of words judges all orders of a sentence alike; an LSTM tells who liked it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.pages import expected, in_node, node
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


def test_the_same_words_in_another_order(opened: Callable[[str], Browser]) -> None:
    page = opened("opinions")
    shares = (
        "[...document.querySelectorAll('.live-bars td:last-child')].map((one) => parseInt(one.textContent))"
    )
    bag, lstm, sorted_bag, sorted_lstm = page.run(shares)
    assert bag == sorted_bag and lstm > 50 and lstm != sorted_lstm
    page.run("document.querySelectorAll('.live-button')[1].click()")
    page.wait("document.querySelector('.live-stage p').textContent.includes('did not like')")
    assert page.run(shares)[1] < 50
