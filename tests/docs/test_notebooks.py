"""The notebooks of the course: clean for JupyterLab, cells for nbgrader, checks, and homework for marks."""

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.tools import tool
from weft.testing import check_exercise
from weft.testing.exercises import EXERCISES

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "course"
SCRATCH = sorted(path for path in (COURSE / "scratch").glob("*.md") if path.stem != "index")
SLOW = {"elman-size"}
"""Exercises whose check trains a network."""

LEFT = re.compile(
    r"^[`:~]{3,}\{|\{[a-z:-]+\}`|\]\([^)]*\.md[#)]|\\(?:softmax|R)\b|^\([a-z-]+\)=|\{\{ ", re.MULTILINE
)
"""What only Sphinx understands."""


@pytest.fixture(scope="module")
def notebooks() -> ModuleType:
    pytest.importorskip("nbformat")
    return tool("notebooks")


def labels() -> list[str]:
    return [
        label
        for path in sorted(COURSE.rglob("*.md"))
        for label in re.findall(r"\{exercise\}[^\n]*\n:label: (\S+)", path.read_text("utf-8"))
    ]


def answers() -> dict[str, str]:
    text = (COURSE / "solutions.py").read_text("utf-8")
    parts = re.split(r"^# %% ([\w-]+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def defined(code: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(code, names)
    return names


def markdown(book: dict) -> str:
    texts = ("".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown")
    return re.sub(r"^(```|~~~).*?^\1$", "", "\n\n".join(texts), flags=re.DOTALL | re.MULTILINE)


def test_every_page_becomes_a_notebook_without_what_only_sphinx_understands(
    notebooks: ModuleType, tmp_path: Path
) -> None:
    made = notebooks.write(tmp_path)
    assert {path.stem for path in made} >= {"lstm", "byte-pairs", "index"}
    for path in made:
        book = json.loads(path.read_text("utf-8"))
        text = markdown(book)
        assert LEFT.search(text) is None, (path.name, LEFT.search(text))
        for cell in book["cells"]:
            for name in re.findall(r"\(attachment:([^)]+)\)", "".join(cell["source"])):
                assert any(cell["attachments"][name].values()), path.name
        for target in re.findall(r"\]\(([\w./-]+\.ipynb)\)", text):
            assert (path.parent / target).is_file(), (path.name, target)
        assert text.count("<details>") == text.count("</details>")
    lstm = markdown(json.loads((tmp_path / "lstm.ipynb").read_text("utf-8")))
    assert "(data:image/svg+xml;base64," in lstm  # JupyterLab does not show an SVG that is attached
    assert "(attachment:gates.png)" in lstm
    assert "<details><summary>Solution</summary>" in lstm
    assert "`weft check lstm-parameters FILE`" in lstm


def test_every_page_that_runs_has_a_clean_download(notebooks: ModuleType) -> None:
    kept = (ROOT / "docs" / "_executed").rglob("*.ipynb")
    for name in sorted(path.relative_to(ROOT / "docs/_executed").with_suffix("").as_posix() for path in kept):
        notebooks.clean(notebooks.read(ROOT / "docs" / f"{name}.md"), notebooks.Page(name))


def test_a_cell_with_options_keeps_its_code(notebooks: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```{code-cell} python3\n:tags: [remove-input]\nx = 1\ny = x\n```\n", "utf-8")
    [cell] = notebooks.read(page).cells
    assert cell.source == "x = 1\ny = x"
    assert cell.metadata.tags == ["remove-input"]


def test_links_outside_the_notebooks_go_to_the_site_or_are_words(notebooks: ModuleType) -> None:
    text = (
        "See [cells](../reference/equations.md#c5), [nats](../reference/glossary.md#nat), `training.seed`, "
    )
    text += "`[a](b.md)`."
    page = notebooks.Page("course/lstm")
    words = "See cells, nats, `training.seed`, `[a](b.md)`."
    assert notebooks.inline(text, page) == words
    page = notebooks.Page("course/lstm", "https://example.org/weft/")
    assert notebooks.inline(text, page) == (
        "See [cells](https://example.org/weft/reference/equations.html#c5), "
        "[nats](https://example.org/weft/reference/glossary.html#nat), `training.seed`, `[a](b.md)`."
    )


def test_homework_has_cells_for_nbgrader_and_no_solutions(notebooks: ModuleType, tmp_path: Path) -> None:
    made = notebooks.write(tmp_path, homework=True)
    marked: dict[str, set[str]] = {"release": set(), "source": set()}
    for path in made:
        book = json.loads(path.read_text("utf-8"))
        way = path.relative_to(tmp_path).parts[0]
        text = path.read_text("utf-8")
        assert "<summary>Solution" not in text
        assert ("BEGIN SOLUTION" in text) <= (way == "source")
        for cell in book["cells"]:
            if "nbgrader" in cell["metadata"]:
                marked[way].add(cell["metadata"]["nbgrader"]["grade_id"])
    assert marked["release"] == marked["source"] == {*labels(), *(f"test-{one}" for one in EXERCISES)}


def test_every_check_has_an_exercise_and_an_answer() -> None:
    assert len(set(labels())) == len(labels())
    assert set(EXERCISES) == set(labels())
    assert list(answers()) == list(EXERCISES)


def test_a_word_is_translated_where_it_stands_and_not_in_a_name_before(notebooks: ModuleType) -> None:
    page = notebooks.Page("course/elman", language="hr")
    (shape,) = (said for key, said in page.words.items() if key == "shape")
    text = "```{diagram} task-shapes\n```\n\n| shape |\n|---|\n"
    assert page.translated(text) == text.replace("| shape |", f"| {shape} |")


@pytest.mark.parametrize("language", ["es", "hr", "pl", "ru"])
def test_a_notebook_speaks_the_language_of_its_page(notebooks: ModuleType, language: str) -> None:
    name, found = "course/attention", []
    for spoken in ("en", language):
        page = notebooks.Page(name, language=spoken)
        found.append(markdown(notebooks.clean(notebooks.read(COURSE / "attention.md"), page)))
    words = page.words
    assert words["Solution"] in found[1] and f"**{words['Exercise']} " in found[1]
    text = "After this chapter you can compute attention by hand"
    said = next(one for key, one in words.items() if key.startswith(text))
    assert text in found[0] and said in found[1] and text not in found[1]
    assert len(found[1].split("\n\n")) == len(found[0].split("\n\n"))
    prose = [re.sub(r"!\[.*", "", one).split("\n") for one in found]
    both = [{line for line in one if len(re.findall("[a-z]{3}", line)) > 9} for one in prose]
    assert len(both[0] & both[1]) < 3  # titles of papers


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in EXERCISES]
)
def test_the_answer_is_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_exercise(name, defined(answers()[name]))
    assert capsys.readouterr().out == f"✓ {name}\n"


@pytest.mark.parametrize("name", list(EXERCISES))
def test_a_missing_a_wrong_and_a_broken_answer_get_one_sentence(name: str) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    with pytest.raises(AssertionError, match=r"^`\w+` is not defined$"):
        check_exercise(name, {})
    asked = re.findall(r"`(\w+)", EXERCISES[name].asks)
    for value in (7.5, lambda *_: 7.5, broken, lambda *_: None):
        with pytest.raises(AssertionError) as wrong, contextlib.redirect_stdout(io.StringIO()):
            check_exercise(name, dict.fromkeys(asked, value))
        assert "\n" not in str(wrong.value)


@pytest.mark.slow
@pytest.mark.parametrize("page", SCRATCH, ids=lambda page: page.stem)
def test_a_notebook_from_scratch_runs_in_an_empty_folder_and_turns_green(
    page: Path, notebooks: ModuleType, tmp_path: Path
) -> None:
    book = notebooks.clean(notebooks.read(page), notebooks.Page(f"course/scratch/{page.stem}"))
    code = "\n\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "✓" in done.stdout
    assert "✗" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_notebooks_from_scratch_end_with_a_green_check() -> None:
    assert len(SCRATCH) == 9
    for page in SCRATCH:
        kept = json.loads((ROOT / "docs/_executed/course/scratch" / f"{page.stem}.ipynb").read_text("utf-8"))
        text = json.dumps(kept, ensure_ascii=False)
        assert "✓ " in text
        assert "[31m✗" not in text


STUDENTS = ["Ana Kovač", "Jan Nowak", "Иван Петров"]


@pytest.fixture(scope="module")
def marked(notebooks: ModuleType) -> ModuleType:
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
    nbformat = pytest.importorskip("nbformat")
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
