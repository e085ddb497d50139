"""weft check: answers of students, in files and notebooks."""

import json
from pathlib import Path

import pytest

from tests.commands.shell import weft

RIGHT = "lstm = 4 * (200 * 100 + 200**2 + 200)\nelman = lstm // 4\n"


def notebook(path: Path, *cells: tuple[str, dict]) -> Path:
    book = {
        "cells": [
            {"cell_type": "code", "metadata": metadata, "source": source.splitlines(True), "outputs": []}
            for source, metadata in cells
        ]
    }
    path.write_text(json.dumps(book), "utf-8")
    return path


def test_exercises_are_listed_and_one_says_what_it_asks_for() -> None:
    answer = weft("check", code=0)
    assert any(line.startswith("lstm-parameters ") for line in answer.lines)
    assert weft("check", "lstm-parameters").out == "Define `lstm` and `elman`, two numbers of parameters.\n"


def test_a_right_answer(tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    file.write_text(RIGHT, "utf-8")
    assert weft("check", "lstm-parameters", file)[:2] == (0, "✓ lstm-parameters\n")
    file = notebook(tmp_path / "a.ipynb", ("%%bash\nfalse", {}), ("!false\n%time 1\n" + RIGHT, {}))
    assert weft("check", "lstm-parameters", file)[:2] == (0, "✓ lstm-parameters\n")
    mark = {"nbgrader": {"grade_id": "lstm-parameters"}}
    file = notebook(tmp_path / "b.ipynb", ("1 / 0", {}), (RIGHT, mark))
    assert weft("check", "lstm-parameters", file)[:2] == (0, "✓ lstm-parameters\n")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "lstm = 60200\nelman = 60200",
            "lstm-parameters: `lstm` is 60,200, which is not right: an LSTM has four gates, "
            "each with W, U and b of its own",
        ),
        ("elman = 1", "lstm-parameters: `lstm` is not defined"),
        ("lstm = 'many'", "lstm-parameters: `lstm`: expected a number, got 'many'"),
        ("x = 1\nlstm = x / 0", "line 2: ZeroDivisionError: division by zero; correct it and check again"),
        ("lstm = (", "line 1: '(' was never closed; correct it and check again"),
        ("raise SystemExit", "line 1: SystemExit: ; correct it and check again"),
        (
            "lstm = float('nan')",
            "lstm-parameters: `lstm` is nan, which is not right: count W, U and b of four gates",
        ),
    ],
)
def test_a_wrong_answer_gets_one_sentence(tmp_path: Path, code: str, sentence: str) -> None:
    file = tmp_path / "answer.py"
    file.write_text(code, "utf-8")
    answer = weft("check", "lstm-parameters", file)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"weft: {file}: {sentence}\n"


def test_the_course_shows_what_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    file.write_text("lstm = 60200\nelman = 60200", "utf-8")
    printed = weft("check", "lstm-parameters").out + weft("check", "lstm-parameters", file).err
    page = (Path(__file__).resolve().parents[2] / "docs" / "course" / "lecturer.md").read_text("utf-8")
    assert all(line.replace(f"{tmp_path}/", "") in page for line in printed.splitlines())


def test_an_unknown_exercise_and_files_that_are_none(tmp_path: Path) -> None:
    assert "did you mean 'lstm-parameters'?" in weft("check", "lstm-parameter").err
    assert "cannot be read" in weft("check", "lstm-parameters", tmp_path / "none.py").err
    file = tmp_path / "bad.ipynb"
    for content in (b"\xff\xfe", b"{}", b"[]", b'{"cells": [1]}', b'"x"'):
        file.write_bytes(content)
        answer = weft("check", "lstm-parameters", file)
        assert (answer.code, "expected a Python file or a notebook" in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = = 1", "redak 1: neispravna sintaksa; ispravite to i provjerite ponovno"),
        ("raise RuntimeError('x\\ny')", "redak 1: RuntimeError: x\\ny; ispravite to i provjerite ponovno"),
        (
            "lstm = 60200",
            "lstm-parameters: `lstm` je 60 200, a to nije točno: LSTM ima četvera vrata, "
            "svaka sa svojim W, U i b",
        ),
        (None, "ne može se pročitati: datoteka ili mapa ne postoji; navedite datoteku .py ili .ipynb"),
    ],
)
def test_every_sentence_is_in_the_language(tmp_path: Path, code: str | None, sentence: str) -> None:
    file = tmp_path / "answer.py"
    if code:
        file.write_text(code, "utf-8")
    assert weft("check", "lstm-parameters", file, "--language", "hr").err == f"weft: {file}: {sentence}\n"


@pytest.mark.parametrize("language", ["hr", "HR", "hr_HR.UTF-8", "hr-HR"])
def test_a_language_may_be_written_as_a_locale(language: str) -> None:
    said = "nijedan zadatak s provjerom ne zove se 'lstm'; mislite li na 'lstm-parameters'?"
    assert said in weft("check", "lstm", "--language", language).err


def test_a_language_that_the_course_lacks_is_refused() -> None:
    assert "'hrvatski' is not one of 'en', 'es'" in weft("check", "--language", "hrvatski").err
