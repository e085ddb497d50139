"""On a Git host Markdown is only Markdown: no roles, no placeholders, links that lead somewhere."""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
BLOCK = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1`*$", re.MULTILINE | re.DOTALL)
LEFT = re.compile(r"\{[a-z:-]+\}`|\{\{|^\([\w-]+\)=$|^:::+\{(?:equation|figure|vote)", re.MULTILINE)
"""A role, a placeholder, a target: what a plain viewer shows as it is."""


@functools.cache
def prose(page: str) -> str:
    """The text of a page without blocks of code."""
    return BLOCK.sub("", (ROOT / page).read_text("utf-8"))


@functools.cache
def anchors(page: str) -> set[str]:
    """What a Git host calls the headings of a page."""
    words = [
        re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", one) for one in re.findall(r"^#+ +(.+)$", prose(page), re.M)
    ]
    return {re.sub(r"[^\w\- ]", "", one.strip().lower()).replace(" ", "-") for one in words}


def left(text: str) -> list[str]:
    return LEFT.findall(re.sub(r"(?<!\})(`+)[^`\n].*?\1", "", text))


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_left_that_only_sphinx_understands(page: str) -> None:
    assert left(prose(page)) == []


def test_roles_placeholders_and_targets_are_found() -> None:
    assert len(left("See {term}`attention` and {{ demo.beam }}.\n(here)=\n")) == 3
    assert left("`{{ x|upper }}`, `{count}` and ``{term}`x` `` are code") == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    wrong = []
    for target in re.findall(r"\]\(([^)\s:]+)\)", re.sub(r"`[^`\n]+`", "", prose(page))):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        known = (
            anchors(str(file.resolve().relative_to(ROOT)))
            if file.suffix == ".md" and file.exists()
            else {anchor}
        )
        wrong += [target] if not file.exists() or (anchor and anchor not in known) else []
    assert wrong == []
