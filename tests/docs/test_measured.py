"""Scores that pages and recipes quote are those of a record in docs/measured, or are marked as older."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from weft import rooms
from weft.config import read_recipe
from weft.config.recipe import shipped
from weft.importing.families.every import FAMILIES
from weft.metrics.intervals import mean_of
from weft.nn.cells.cell import Cell

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OWN_RUNS = {"memory", "recurrences", "scale", "texts", "usual"}
"""Appendices that scripts write from runs of their own."""

PUBLISHED = {"Best published", "Most like ours"}
"""Columns with the figures of others."""

MIXED = {"README", "peers", "results", "speed"}
"""Pages that have tables of other things than scores, as the guides do."""

OLDER, MARK = "before records were kept", "†"
NAMES = sorted((one.stem for one in [*shipped(), *(DOCS / "measured").glob("*.yaml")]), key=len, reverse=True)
NAME = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, NAMES))})(?![\w-])")
NUMBER = re.compile(r"(?<![\w.,])\d*\.\d+(?![\w.]*\d)|(?<![\w.,])\d+(?= %)")


@cache
def records() -> dict[str, dict[str, Any]]:
    return {
        one.stem: json.loads(one.read_text("utf-8")) for one in sorted((DOCS / "measured").glob("*.json"))
    }


def recipe_of(record: dict[str, Any]) -> str | Path:
    """The name of a shipped recipe, or the file of one that `weft init` wrote."""
    name = record["recipe"]
    return ROOT / name if name.endswith(".yaml") else name


@cache
def measured(recipe: str) -> frozenset[float]:
    """Every number that may be quoted for a recipe: scores, also in percent or nats, baselines, CPU time."""
    found: set[float] = set()
    of_seeds: dict[str, list[float]] = defaultdict(list)
    for record in records().values():
        if Path(record["recipe"]).stem != recipe:
            continue
        minutes = record["training"]["cpu_minutes"]
        found |= {minutes, 60 * minutes}
        alike = [one for one in record["overrides"] if not one.startswith(("training.seed=", "data.fold="))]
        parts = [record["evaluation"], *record["evaluation"].get("pairs", {}).values()]
        for name, score in [one for part in parts for one in part["scores"].items()]:
            quoted = {score[key] for key in ("value", "low", "high") if score.get(key) is not None}
            quoted |= set(score["baselines"].values())
            found |= quoted | ({math.log(one) for one in quoted} if name == "perplexity" else set())
            for what, value in {"": score["value"], **score["baselines"]}.items():
                of_seeds[f"{alike} {record['evaluate']} {name} {what}"].append(value)
    for name, values in of_seeds.items():
        if len(values) > 1:
            found |= set(mean_of(values, name=name)[:3])
    return frozenset(found | {100 * one for one in found})


def unknown(text: str, recipes: Iterable[str]) -> list[str]:
    """Numbers of a text that no record of these recipes has when rounded alike."""
    known = [one for recipe in recipes for one in measured(recipe)]
    found = []
    for number in NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)):
        digits = len(number.partition(".")[2])
        if not any(f"{one:.{digits}f}" == f"{float(number):.{digits}f}" for one in known):
            found.append(number)
    return found


def tables(page: str) -> Iterator[list[str]]:
    """The lines of each table of a page."""
    for inside, lines in groupby(page.splitlines(), lambda line: line.startswith("|")):
        if inside:
            yield list(lines)


def wrong(page: str, *, of_recipes: bool = False) -> list[str]:
    """The rows of a page's tables with numbers that no record has.

    of_recipes: read only tables whose head or first column says that they are about recipes.
    """
    found = []
    for table in tables(page):
        named = NAME.findall("\n".join(table))
        head, _, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
        about = " ".join([*head, *(row[0] for row in rows)])
        if of_recipes and not re.search(f"recipe|{NAME.pattern}", about, re.IGNORECASE):
            continue
        for row in rows:
            if MARK in row[0]:
                continue
            cells = [
                cell
                for title, cell in zip(head, row, strict=True)
                if title not in PUBLISHED and MARK not in title + cell
            ]
            numbers = unknown(" ".join(cells), NAME.findall(" ".join(row)) or named)
            if numbers:
                found.append(f"{', '.join(numbers)} in: {' | '.join(row)}")
    return found


def pages() -> list[str]:
    appendix = [page for page in sorted((DOCS / "appendix").glob("*.md")) if page.stem not in OWN_RUNS]
    guides = sorted((DOCS / "guides" / "tasks").glob("*.md"))
    found = [ROOT / "README.md", DOCS / "results.md", *appendix, *guides]
    return [page.relative_to(ROOT).as_posix() for page in found]


@pytest.mark.parametrize("page", pages())
def test_every_score_in_a_table_is_of_a_record_or_marked_as_older(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert wrong(text, of_recipes="/guides/" in page or Path(page).stem in MIXED) == []
    assert MARK not in text or OLDER in text, "the page says what its mark means"


def test_every_header_of_a_recipe_quotes_its_record_or_says_that_it_is_older() -> None:
    faults = {}
    for recipe in shipped():
        header = recipe.read_text("utf-8").partition("\ntask:")[0]
        if OLDER in header or "\n# Not measured" in header:
            continue
        _, _, *lines, last = header.splitlines()
        trainings = [one["training"] for one in records().values() if Path(one["recipe"]).stem == recipe.stem]
        numbers = unknown(" ".join(lines), [recipe.stem, *NAME.findall(header)])
        if numbers or not any(
            one["machine"].partition(",")[0] in last and one["precision"] in last for one in trainings
        ):
            faults[recipe.stem] = numbers or last
    assert faults == {}


def test_records_are_of_the_recipes_as_they_are_today() -> None:
    changed = [
        name
        for name, record in records().items()
        if read_recipe(recipe_of(record), record["overrides"]).plain() != record["settings"]
    ]
    assert changed == []


def test_a_figure_that_no_record_has_is_found() -> None:
    name, record = next(iter(records().items()))
    recipe, minutes = record["recipe"], record["training"]["cpu_minutes"]
    row = "| data | `{}`, {} | {} |"
    head = "## Scores\n\n| Data | Recipe | Minutes |\n|---|---|---|\n"
    assert wrong(head + row.format(recipe, "one seed", f"{minutes:.3f}")) == [], name
    assert len(wrong(head + row.format(recipe, "one seed", "98765.4"))) == 1
    assert wrong(head + row.format(recipe, "one seed", "98765.4 †")) == []


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


def demo_scores() -> dict[str, str]:
    """The scores of `weft demo` as demo_pages write them."""
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


def demo_pages() -> list[Path]:
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
    assert [figure for name in QUOTED[page] if (figure := demo_scores()[name]) not in text] == []


def test_no_page_quotes_another_score_of_the_demo() -> None:
    allowed = set(demo_scores().values())
    others = {
        page.relative_to(ROOT).as_posix(): quoted(page.read_text("utf-8")) - allowed for page in demo_pages()
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
