"""The verdict of a claim opens after the vote, and by itself where scripts are off."""

import json
import re
from collections.abc import Callable

from tests.live.pages import DOCS
from tests.serve.browser import Browser

VOTE = re.compile(r"^```\{vote\} (\w+)\n:title: Claim (\d+)$", re.MULTILINE)


def test_the_page_asks_about_every_claim() -> None:
    asked = VOTE.findall((DOCS / "claims.md").read_text("utf-8"))
    found = [json.loads(path.read_text("utf-8")) for path in sorted(DOCS.glob("pictures/claims/*.json"))]
    assert asked == [(one["verdict"], str(number)) for number, one in enumerate(found, 1)]


def test_a_vote_opens_its_verdict(opened: Callable[[str], Browser]) -> None:
    page = opened("vote")
    first = "document.querySelector('.live-verdict')"
    assert page.run(f"{first}.open") is False
    page.run("document.querySelectorAll('.live-choice input')[1].focus()")
    page.press(" ", 32, " ")
    assert page.run(f"{first}.open") is True
    told = page.run("document.querySelector('.live-told').textContent")
    assert told.startswith(f"Your vote: contradicted. Measured: {page.run(f'{first}.dataset.verdict')}.")
