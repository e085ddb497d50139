"""Labels of opinions, neighbours of words, and votes on claims and questions."""

import base64
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.live.pages import DOCS, STATIC, expected, in_node, node
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


@node
def test_neighbours_and_analogies(tmp_path: Path) -> None:
    text = (STATIC / "models" / "vectors.js").read_text("utf-8")
    found = re.search(r"live\.give\(\"vectors\", (.*)\);\n", text)
    assert found is not None
    data = json.loads(found[1])
    names = data["words"].split(" ")
    rows = np.frombuffer(base64.b64decode(data["table"]), np.int8).reshape(-1, data["size"]).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    def nearest(vector: np.ndarray, without: list[str]) -> list[tuple[str, float]]:
        cosines = rows @ vector / np.linalg.norm(vector)
        order = [at for at in np.argsort(-cosines) if names[at] not in without]
        return [(names[at], cosines[at]) for at in order[:8]]

    of = {name: rows[at] for at, name in enumerate(names)}
    script = """(async () => {
      const { table, neighbours, analogy } = live.parts.vectors, all = table(await live.data('vectors'));
      return [neighbours(all, 'folder'), analogy(all, 'row', 'column', 'rows')];
    })()"""
    wanted = [
        nearest(of["folder"], ["folder"]),
        nearest(of["column"] - of["row"] + of["rows"], ["row", "column", "rows"]),
    ]
    for ours, theirs in zip(wanted, in_node("vectors", script, tmp_path, "vectors"), strict=True):
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [one for _, one in ours] == pytest.approx([one for _, one in theirs], abs=1e-9)


def test_a_word_that_is_typed(opened: Callable[[str], Browser]) -> None:
    page = opened("vectors")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("chart")
    rows = "document.querySelectorAll('.live-bars')[0].rows"
    assert page.run(f"{rows}.length") == 8
    assert "chart" not in page.run(f"{rows}[0].cells[0].textContent").split()
    page.run("document.querySelector('.live-stage input').select()")
    page.type("zzz")
    assert page.run("document.querySelector('.live-columns p').textContent").startswith("Not among the")


VOTE = re.compile(r"^<summary><b>Claim (\d+)\.</b> .*</summary>\n\n\*\*([\w ]+)\*\*", re.MULTILINE)


def test_the_page_asks_about_every_claim() -> None:
    page = (DOCS / "claims.md").read_text("utf-8")
    told = re.findall(r"^\| (\d+) \| \*\*([\w ]+)\*\* \|", page, re.MULTILINE)  # the table at its end
    asked = [(number, verdict.lower()) for number, verdict in VOTE.findall(page)]
    assert asked == told and len(told) == 14


def test_every_verdict_can_be_voted_for() -> None:
    vote, script = (DOCS / name for name in ("_ext/vote.py", "_static/live/vote.js"))
    offered = re.findall(r"VERDICTS = [(\[](.+)[)\]]", vote.read_text("utf-8") + script.read_text("utf-8"))
    assert len(offered) == 2 and offered[0].replace('"', "'") == offered[1]
    asked = {verdict.lower() for _, verdict in VOTE.findall((DOCS / "claims.md").read_text("utf-8"))}
    assert asked <= set(re.findall(r"'([\w ]+)'", offered[1]))


def test_a_vote_opens_its_verdict(opened: Callable[[str], Browser]) -> None:
    page = opened("vote")
    first = "document.querySelector('.live-verdict')"
    assert page.run(f"{first}.open") is False
    page.run("document.querySelectorAll('.live-choice input')[1].focus()")
    page.press(" ", 32, " ")
    assert page.run(f"{first}.open") is True
    told = page.run("document.querySelector('.live-told').textContent")
    assert told.startswith(f"Your vote: contradicted. Measured: {page.run(f'{first}.dataset.verdict')}.")


def test_a_question_is_answered_and_a_class_is_counted(opened: Callable[[str], Browser]) -> None:
    page = opened("vote")
    page.run("document.querySelector('.live-options').scrollIntoView()")
    asked = "document.querySelector('.live-options').closest('.live')"
    page.wait(f"{asked}.dataset.ready")
    right = page.run(f"{asked}.querySelector('.live-verdict').dataset.verdict")
    assert page.run(f"[...{asked}.querySelectorAll('.live-choice label')].map((one) => one.textContent)") == [
        *"ABC"
    ]
    assert page.run(f"{asked}.querySelector('.live-verdict').open") is False and right in "ABC"
    page.run(f"{asked}.querySelector('.live-hands').open = true")
    page.run(f"{asked}.querySelectorAll('.live-hands input')[1].focus()")
    page.type("17")
    shown = f"[...{asked}.querySelectorAll('.live-bars td:last-child')].map((one) => one.textContent)"
    page.wait(f"{shown}[1].endsWith('17') || {shown}[1].startsWith('17')")
    page.run(f"{asked}.querySelectorAll('.live-choice input')[2].click()")
    told = page.run(f"{asked}.querySelector('.live-told').textContent")
    assert told.startswith(f"Your vote: C. Right is {right}.")
    assert page.run(f"{asked}.querySelector('.live-verdict').open") is True


def test_a_right_answer_is_one_of_the_options() -> None:
    texts = [path.read_text("utf-8") for path in sorted((DOCS / "course").glob("*.md"))]
    found = [
        one for text in texts for one in re.findall(r"^```\{question\} (.)\n(.*?)^```$", text, re.M | re.S)
    ]
    assert len(found) >= 16
    for right, inside in found:
        _, options, answer = inside.split("\n\n", 2)
        assert right in "ABCD"[: len(re.findall("^- ", options, re.M))] and answer.strip()
