"""Pages quote the scores of the demo as docs/measured has them; README counts the cells that recur."""

import json
import re
from pathlib import Path

import pytest

from weft import rooms
from weft.importing.families.every import FAMILIES
from weft.nn.cells.cell import Cell

ROOT = Path(__file__).resolve().parents[2]
DEMO = re.compile(r"weft demo|make demo|help-demo|demo-en-es|demo's|libreoffice-help test en-es")
SCORE = re.compile(r"\b\d\d\.\d+ \[\d\d\.\d+, \d\d\.\d+\]")
READERS = ("README.md", *(f"docs/{name}" for name in ("index.md", "claims.md", "results.md", "systems.md")))
FOLDERS = ("start", "course", "guides")
QUOTED = {
    "README.md": ("beam", "nearest"),
    "docs/results.md": ("beam", "nearest"),
    "docs/appendix/translation.md": ("beam", "greedy", "nearest", "copied"),
    "docs/start/first-translator.md": ("beam", "nearest", "copied"),
    "docs/guides/tasks/translate.md": ("beam", "beam in short", "nearest", "nearest in short", "copied"),
    "recipes/translate/help-demo.yaml": ("beam in short", "nearest in short"),
}


def measured() -> dict[str, str]:
    """The scores of `weft demo` as pages write them."""
    found = {}
    for name, record in (("beam", "help-demo"), ("greedy", "help-demo-greedy")):
        text = (ROOT / "docs" / "measured" / f"{record}.json").read_text("utf-8")
        bleu = json.loads(text)["evaluation"]["scores"]["BLEU"]
        for form, digits in ((name, 2), (f"{name} in short", 1)):
            found[form] = f"{bleu['value']:.{digits}f} [{bleu['low']:.{digits}f}, {bleu['high']:.{digits}f}]"
        for base, key in (
            ("copied", "source copied"),
            ("nearest", "translation of the nearest training sentence"),
        ):
            found |= {
                base: f"{bleu['baselines'][key]:.2f}",
                f"{base} in short": f"{bleu['baselines'][key]:.1f}",
            }
    return found


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


@pytest.mark.parametrize("page", QUOTED)
def test_a_page_quotes_the_scores_that_were_measured(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert [figure for name in QUOTED[page] if (figure := measured()[name]) not in text] == []


def test_no_page_quotes_another_score_of_the_demo() -> None:
    allowed = set(measured().values())
    others = {
        page.relative_to(ROOT).as_posix(): quoted(page.read_text("utf-8")) - allowed for page in pages()
    }
    assert {page: scores for page, scores in others.items() if scores} == {}


def test_another_score_is_found() -> None:
    assert quoted("| `make demo` | BLEU 41.50 [39.10, 43.90] |") == {"41.50 [39.10, 43.90]"}
    assert quoted("`weft demo`\n\n41.50 [39.10, 43.90]") == set()


def test_the_readme_counts_cells_that_recur() -> None:
    around = {"block", "projected", "variational", "zoneout", "rwkv7_layers"}
    cells = set(rooms.parts(rooms.room_of(Cell), Cell)) - around - {"stepwise", "local_attention"}
    assert f"| {len(cells)} cells, each tested" in (ROOT / "README.md").read_text("utf-8")


def test_the_readme_counts_the_architectures_that_are_imported() -> None:
    assert f"| imports {len(FAMILIES)} architectures;" in (ROOT / "README.md").read_text("utf-8")
