"""docs/reference/equations.md: every file, symbol and test that it names exists."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

from weft import rooms
from weft.nn import cells
from weft.nn.cells.cell import Cell

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "equations.md"
CARD = re.compile(
    r"^\*\*(?P<id>[A-Z]\d+)(?P<rest>[^\n]*)\*\* \(code `(?P<code>\S+)`, test `(?P<test>\S+)`\)\n"
    r"(?P<body>.*?)^---$",
    re.MULTILINE | re.DOTALL,
)
PLACE = re.compile(r"^(?P<file>(?:weft|tests)/[\w/]+\.py)::(?P<symbol>[\w.]+)$")

WITHOUT = {"D1", "D6", "M1", "M11", "M16"}
"""Systems of docs/systems.md that are a choice of parts, without an equation of their own."""


class Row(NamedTuple):
    id: str
    equation: str
    code: str
    test: str


def rows() -> list[Row]:
    found = CARD.finditer(PAGE.read_text("utf-8"))
    return [Row(card["id"], card["body"].strip(), card["code"], card["test"]) for card in found]


def symbols(path: Path) -> set[str]:
    """Names of functions, classes and `Class.method` that a file defines."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            }
    return found


def test_every_card_is_read() -> None:
    assert len(rows()) == PAGE.read_text("utf-8").count("`, test `")


def test_each_equation_has_its_file_symbol_and_test() -> None:
    defined: dict[Path, set[str]] = {}
    wrong = []
    for row in rows():
        assert row.equation, row.id
        for cell in (row.code, row.test):
            match = PLACE.match(cell)
            assert match, f"{row.id}: cannot read {cell!r}; write file::symbol"
            path = ROOT / match["file"]
            if path not in defined:
                defined[path] = symbols(path) if path.is_file() else set()
            if match["symbol"] not in defined[path]:
                wrong.append(f"{row.id}: {cell} is gone")
    assert wrong == []


def test_every_system_that_is_built_has_a_row() -> None:
    systems = re.findall(r"^\| ([A-Z]\d+) \|", (ROOT / "docs" / "systems.md").read_text("utf-8"), re.M)
    assert set(systems) - {row.id for row in rows()} == WITHOUT


def test_every_part_has_a_row() -> None:
    page = PAGE.read_text("utf-8")
    files = [
        path.relative_to(ROOT).as_posix()
        for room in ("cells", "scores", "heads", "pools")
        for path in sorted((ROOT / "weft" / "nn" / room).glob("*.py"))
        if path.stem not in {"__init__", "initial", "gated", room.removesuffix("s")}
    ]
    assert [file for file in files if file not in page] == []


def test_the_page_of_differences_names_every_cell() -> None:
    guide = (ROOT / "docs" / "guides" / "recurrences.md").read_text("utf-8")
    table = guide.split("### Differences from the papers")[1].split("\n## ")[0]
    named = set(
        re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    assert rooms.parts(cells, Cell).keys() - named == {"stepwise"}  # which has no recurrence
