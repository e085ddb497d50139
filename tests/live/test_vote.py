"""The verdict of a claim opens after the vote, and by itself where scripts are off."""

import re
from collections.abc import Callable

from tests.live.pages import DOCS
from tests.serve.browser import Browser

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
