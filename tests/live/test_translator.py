"""The page's translator answers as `weft predict` did, and its search tree is the search."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.live.pages import expected, in_node, node
from tests.serve.browser import Browser


@node
def test_answers_and_the_tree(tmp_path: Path) -> None:
    given = expected("translator")
    script = f"""(async () => {{
      const net = await live.model('translator'), found = [], {{ search, named }} = live.parts.translator;
      for (const text of {json.dumps([text for text, _ in given])}) {{
        const {{ steps, pieces, score, text: said, attention }} = named(await search(net, text, 5));
        const sums = attention.map((row) => row.reduce((a, b) => a + b, 0));
        found.push({{ steps, pieces, score, said, attention: sums }});
      }}
      return found;
    }})()"""
    found = in_node("translator", script, tmp_path, "translator")
    same = [one["said"] == wanted for one, (_, wanted) in zip(found, given, strict=True)]
    assert sum(same) >= len(same) - 1  # weights have 8 bits
    for one in found:
        assert all(abs(total - 1) < 1e-3 for total in one["attention"])
        for before, after in zip(one["steps"], one["steps"][1:], strict=False):
            sums = [kept["sum"] for kept in after["live"]]
            assert len(sums) <= 5 and sums == sorted(sums, reverse=True)
            for kept in after["live"]:
                parent = before["live"][kept["parent"]]
                assert kept["sum"] <= parent["sum"] and kept["path"].startswith(parent["path"])


@node
def test_the_hint_is_true_for_the_first_sentence(tmp_path: Path) -> None:
    script = """(async () => {
      const net = await live.model('translator'), { search, named, winner } = live.parts.translator;
      const text = 'Open the folder that contains the picture.';
      const [one, five] = [1, 5].map((beam) => search(net, text, beam));
      return [(await one).text, (await five).text, winner(named(await five))];
    })()"""
    greedy, best, ranks = in_node("translator", script, tmp_path, "translator")
    assert greedy != best and max(ranks) > 0


def test_pointing_and_playing(opened: Callable[[str], Browser]) -> None:
    page = opened("translator")
    page.wait("document.querySelector('.live-pieces button')")
    numbers = "[...document.querySelectorAll('.live-scroll text.quiet')].map((one) => one.textContent)"
    assert all(one.startswith("−") for one in page.run(numbers))  # log-probabilities
    page.run("document.querySelector('.live-pieces button').focus()")
    tinted = (
        "[...document.querySelectorAll('.live-pieces')[1].children].map((one) => one.style.backgroundColor)"
    )
    assert len(set(page.run(tinted))) > 1
    page.run("document.querySelector('.live-button').click()")
    paths = "document.querySelectorAll('.live-scroll path').length"
    page.wait(f"{paths} > 3")
    few = page.run(paths)
    page.wait(f"{paths} > {few + 5}")
    page.run("document.querySelectorAll('.live-slider input')[1].focus()")
    page.press("Home", 36)
    assert page.run(paths) == 0
