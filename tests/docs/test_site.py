"""The site's own tools (links, docstrings, search, diagrams), and a reference that is complete."""

import importlib
import inspect
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import weft
import weft.tasks
from tests.docs.tools import tool
from weft import rooms
from weft.config import kinds
from weft.config.building import described
from weft.tasks.task import Task
from weft.train.settings import TrainingSettings


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ('<a href="b.html#here">', None),
        ('<a href="https://example.org/x">', None),
        ('<a href="c.html">', "not there"),
        ('<a href="b.html#gone">', "no such anchor"),
        ('<a href="#gone">', "no such anchor"),
        ('<script src="https://cdn.example.org/x.js"></script>', "docs/_static"),
        ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "docs/_static"),
        ('<img src="gone.png">', "not there"),
    ],
)
def test_a_broken_link_and_a_file_from_another_server_are_found(
    tmp_path: Path, body: str, word: str | None
) -> None:
    (tmp_path / "a.html").write_text(body, "utf-8")
    (tmp_path / "b.html").write_text('<p id="here">', "utf-8")
    wrong, _ = tool("links").check(tmp_path)
    assert len(wrong) == (word is not None)
    assert all(word and word in one and one.startswith("a.html") for one in wrong)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["The `x` of a * b.", "Read next: y.py."], ["The ``x`` of a \\* b."]),
        (
            ["Args:", "    x: of", "        shape [B].", "    y: two"],
            ["Args:", "    x: of shape [B].", "    y: two"],
        ),
        (["First:", "    a = b", "then"], ["First:", "", "::", "", "    a = b", "", "then"]),
        (["Rules:", "  1. one", "     more", "  2. two"], ["Rules:", "", "1. one more", "2. two"]),
        ([">>> 1 + 1", "2"], [">>> 1 + 1", "2"]),
    ],
    ids=["prose", "arguments", "formula", "list", "example"],
)
def test_a_docstring_becomes_restructuredtext(lines: list[str], expected: list[str]) -> None:
    found = tool("docstrings").rewritten(lines)
    while found and not found[-1]:
        found.pop()
    assert found == expected


def test_a_line_that_came_in_two_pieces_is_one_line() -> None:
    pytest.importorskip("myst_nb")
    pieces = [
        {"output_type": "stream", "name": "stdout", "text": text}
        for text in ("first\nupdate 1,000:", " loss 2\n", "last\n")
    ]
    (whole,) = tool("executed").joined(pieces)
    assert whole["text"] == "first\nupdate 1,000: loss 2\nlast\n"


DOCS = Path(__file__).resolve().parents[2] / "docs"
FOUND = {  # for "lstm": [page, title, anchor, description, Sphinx's score, file, kind], the best first
    "chapter": ["course/lstm", "The LSTM", "", None, 15, "", "text"],
    "term": ["reference/glossary", "Glossary > LSTM", "#lstm", None, 15, "", "title"],
    "notebook": ["course/scratch/lstm", "The LSTM by hand", "", None, 16, "", "text"],
    "guide": ["guides/recurrences", "Guide > LSTM", "#lstm", None, 15, "", "title"],
    "class": ["reference/api/cells", "weft.nn.cells.lstm.LSTM", "#LSTM", "", 16, "", "object"],
    "page": ["guides/scale", "From one process to many", "", None, 5, "", "text"],
    "results": ["results", "Results", "", None, 5, "", "text"],
    "module": [
        "reference/api/cells",
        "weft.nn.cells.lstm",
        "#module-weft.nn.cells.lstm",
        "",
        26,
        "",
        "object",
    ],
    "entries": ["reference/api/runs", "Runs", "", None, 5, "", "text"],
    "part": ["reference/api/cells", "weft.nn.cells.lstm.LSTM.step", "#step", "", 5, "", "object"],
}


def test_the_site_uses_the_scorer() -> None:
    conf = (DOCS / "conf.py").read_text("utf-8")
    parts = re.findall(r'^html_search_scorer = str\(DOCS / "(.+)" / "(.+)"\)', conf, re.MULTILINE)
    assert [DOCS.joinpath(*one).is_file() for one in parts] == [True]


def test_chapters_then_guides_then_the_reference() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    scorer = (DOCS / "_ext" / "scorer.js").read_text("utf-8")
    program = f"{scorer}\nconsole.log(JSON.stringify({json.dumps(list(FOUND.values()))}.map(Scorer.score)))"
    said = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True, timeout=60)
    scores = dict(zip(FOUND, json.loads(said.stdout), strict=True))
    assert sorted(scores, key=lambda name: -scores[name]) == list(FOUND)
    assert len(set(scores.values())) == len(FOUND)


def test_the_pages_are_there() -> None:
    pages = {one[0] for one in FOUND.values()}
    assert {page for page in pages if not list(DOCS.glob(f"{page}.*"))} == set()


@pytest.mark.parametrize("file", ["attention", "cells", "models", "tasks"])
def test_a_diagram_has_letters_and_a_description(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "diagrams"))
    module = importlib.import_module(file)
    drawn = {
        name: make()
        for name, make in inspect.getmembers(module, inspect.isfunction)
        if make.__module__ == file and not name.startswith("_") and not inspect.signature(make).parameters
    }
    assert drawn
    assert [name for name, one in drawn.items() if "\\" in one.svg() or len(one.alt) < 30] == []


REFERENCE = DOCS / "reference"
MODULES = re.compile(r"^\.\. modules:: (.+)\n(?:   :without: (.+)\n)?", re.MULTILINE)


def test_the_reference_has_every_name_for_users_once_and_no_empty_section() -> None:
    documented = tool("documented").documented()
    described: list[str] = []
    for page in (REFERENCE / "api").glob("*.rst"):
        for packages, without in MODULES.findall(page.read_text("utf-8")):
            modules = [one for package in packages.split() for one in tool("documented").modules(package)]
            left = [one for one in modules if one.rpartition(".")[2] not in without.split()]
            found = [name for name in documented if name.rpartition(".")[0] in left]
            assert found, (page.name, packages)
            described += found
    assert sorted(described) == sorted(documented)
    assert {"weft.run.loading.load", "weft.inspect.frame.InspectorFrame"} <= documented


def test_the_public_names_are_those_that_the_packages_list() -> None:
    page = (REFERENCE / "api" / "public.rst").read_text("utf-8")
    listed = set(re.findall(r"^\.\. public-names:: (\S+)$", page, re.MULTILINE))
    stubs = {
        ".".join(("weft", *path.parent.relative_to(Path(weft.__file__).parent).parts))
        for path in Path(weft.__file__).parent.rglob("__init__.pyi")
    }
    assert listed == stubs  # the directive reads the stubs, which `dir` and `__all__` read too


def test_every_task_has_a_page_of_its_settings() -> None:
    pages = {path.stem for path in (REFERENCE / "settings").glob("*.rst")}
    assert sorted(set(rooms.folders(weft.tasks, Task)) - pages) == []


def test_every_kind_of_part_that_a_recipe_names_has_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in (REFERENCE / "settings").glob("*.rst"))
    named = set(re.findall(r"^\.\. part-settings:: (\S+)$", pages, re.MULTILINE))
    tasks = [rooms.find(weft.tasks, Task, name) for name in rooms.folders(weft.tasks, Task)]
    todo = [TrainingSettings, *(kind for task in tasks for kind in task.sections.values())]
    found = set()
    for kind in todo:
        for annotation, _ in described(kind).values():
            for one in (annotation, *getattr(annotation, "__args__", ())):
                part = kinds.contract_of(one)
                contract = f"{part[0].__module__}.{part[0].__name__}" if part else ""
                if part and contract not in found:
                    found.add(contract)
                    room = rooms.room_of(part[0])
                    todo += rooms.parts(room, part[0]).values()
    assert sorted(found - named) == []


@pytest.mark.parametrize(
    "package", ["weft.data", "weft.metrics", "weft.nn", "weft.nn.cells", "weft.search", "weft.tasks"]
)
def test_public_names_have_examples(package: str) -> None:
    module = importlib.import_module(package)
    public = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    assert [
        name for name, one in public.items() if not inspect.ismodule(one) and ">>>" not in (one.__doc__ or "")
    ] == []


def test_every_name_of_the_reference_has_an_example() -> None:
    places = [one.rpartition(".") for one in tool("documented").documented()]
    named = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, _, name in places}
    without = {name for name, one in named.items() if ">>>" not in (one.__doc__ or "")}
    assert without == {"weft.run.loading.load"}  # it needs a trained run, which its example names
