"""Homework for marks: other numbers for each student, and nothing that tells what is right."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.tools import tool

nbformat = pytest.importorskip("nbformat")

STUDENTS = ["Ana Kovač", "Jan Nowak", "Иван Петров"]


@pytest.fixture(scope="module")
def marked() -> ModuleType:
    tool("notebooks")
    return tool("marked")


def run(book: Any, change: str = "") -> None:
    names: dict[str, object] = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
            exec(change if cell.metadata.get("nbgrader", {}).get("solution") else "", names)


@pytest.mark.parametrize("language", ["en", "es", "hr", "pl", "ru"])
def test_each_student_has_own_numbers_and_the_key_is_right(
    marked: ModuleType, tmp_path: Path, language: str
) -> None:
    marked.write(tmp_path, STUDENTS, language)
    source = nbformat.read(tmp_path / "source" / "marked" / "marked.ipynb", 4)
    header, *key = [line.split("\t") for line in (tmp_path / "key.tsv").read_text("utf-8").splitlines()]
    texts = []
    for student, row in zip(STUDENTS, key, strict=True):
        path = tmp_path / "handed-out" / student.replace(" ", "-") / "marked.ipynb"
        text = path.read_text("utf-8")
        assert not re.search("HIDDEN|SOLUTION|isclose|chance", text) and row[0] == student
        assert not any(value in text for value in row[1:] if len(value) > 4)
        book = nbformat.read(path, 4)
        texts.append([cell.source for cell in book.cells if cell.cell_type == "markdown"])
        answers = dict(zip(header[1:], row[1:], strict=True))
        for handed, own in zip(book.cells, source.cells, strict=True):  # as nbgrader marks it
            about = own.metadata.get("nbgrader")
            assert handed.metadata.get("nbgrader") == about
            if about and about["locked"]:
                handed.source = own.source
            elif about:
                handed.source = f"{about['grade_id']} = {float(answers[about['grade_id']]):.3g}"
        run(book)
        with pytest.raises(AssertionError):
            run(book, "perplexity = 1.0")
    assert len({one[1] for one in texts}) == len(STUDENTS) and not any(
        "{" in re.sub(r"_\{.*?\}", "", t) for one in texts for t in one
    )
    run(source)


def test_every_text_is_translated(marked: ModuleType) -> None:
    texts = {marked.HEAD, marked.NAME, *(one.text for one in marked.QUESTIONS)}
    for language in ("es", "hr", "pl", "ru"):
        words = tool("languages").messages(tool("languages").catalog(language, "marked"))
        assert set(words) == texts
        for text, other in words.items():
            assert sorted(re.findall(r"\{.*?\}", other)) == sorted(re.findall(r"\{.*?\}", text)), text


def test_names_that_are_alike_are_refused(marked: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="alike"):
        marked.write(tmp_path, ["Ana K", "ana-k"])
