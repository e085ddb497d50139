"""Pages take shared figures from docs/figures.toml and quote no others."""

import re
from pathlib import Path

import pytest

from tests.docs.tools import tool

ROOT = Path(__file__).resolve().parents[2]
DEMO = re.compile(r"weft demo|make demo|help-demo|demo-en-es|demo's|libreoffice-help test en-es")
SCORE = re.compile(r"\b\d\d\.\d+ \[\d\d\.\d+, \d\d\.\d+\]")
READERS = ("README.md", *(f"docs/{name}" for name in ("index.md", "claims.md", "results.md", "systems.md")))
FOLDERS = ("start", "course", "guides")


def pages() -> list[Path]:
    found = [ROOT / name for name in READERS]
    return found + [page for name in FOLDERS for page in sorted((ROOT / "docs" / name).rglob("*.md"))]


def quoted(text: str) -> set[str]:
    """Scores with an interval beside the demo: in a paragraph, in a row of a table, or below its test set."""
    pieces = [
        piece
        for part in re.split(r"\n\s*\n", text)
        for piece in (part.splitlines() if part.startswith("|") else [part])
    ]
    lines = [line for piece in pieces if DEMO.search(piece) for line in piece.splitlines()]
    return {score for line in lines if "chrF" not in line for score in SCORE.findall(line)}


def test_no_page_quotes_another_score_of_the_demo() -> None:
    figures = tool("figures")
    allowed = set(SCORE.findall(figures.SOURCE.read_text("utf-8")))
    wrong = {}
    for page in pages():
        others = quoted(figures.filled(page.read_text("utf-8"), page.stem)) - allowed
        if others:
            wrong[page.relative_to(ROOT).as_posix()] = sorted(others)
    assert wrong == {}


def test_a_figure_is_filled_in_also_inside_code() -> None:
    figures = tool("figures")
    assert figures.filled("```\nBLEU {{ demo.beam }} (\n```\n{{ other }}", "page") == (
        "```\nBLEU 40.10 [37.82, 42.43] (\n```\n{{ other }}"
    )
    with pytest.raises(ValueError, match=r"docs/page: .* demo\.gone"):
        figures.filled("{{ demo.gone }}", "page")


def test_another_score_is_found() -> None:
    assert quoted("| `make demo` | BLEU 41.50 [39.10, 43.90] |") == {"41.50 [39.10, 43.90]"}
    assert quoted("`weft demo`\n\n41.50 [39.10, 43.90]") == set()
