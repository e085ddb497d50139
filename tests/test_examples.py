"""Examples in docstrings print what they say; programs of users and of the pages pass mypy --strict."""

import doctest
import importlib
import io
import json
import random
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch

WEFT = Path(__file__).resolve().parents[1] / "weft"


def with_examples() -> dict[str, list[str]]:
    """The modules that hold an example, by their room; a file at the root is a room of its own."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(WEFT.rglob("*.py")):
        place = path.relative_to(WEFT.parent).with_suffix("").parts
        if ">>>" in path.read_text("utf-8"):
            rooms.setdefault(place[1], []).append(".".join(place).removesuffix(".__init__"))
    return rooms


ROOMS = with_examples()


def seed() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)


def run(test: doctest.DocTest) -> str:
    """What an example prints that it does not say, or nothing."""
    found = io.StringIO()
    seed()
    with redirect_stdout(io.StringIO()):
        doctest.DocTestRunner(verbose=False).run(test, out=found.write)
    return found.getvalue()


@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_of_a_room_are_true(room: str) -> None:
    wrong = ""
    for name in ROOMS[room]:
        tests = doctest.DocTestFinder().find(importlib.import_module(name), name)
        assert any(one.examples for one in tests), f"{name} has an example that no docstring holds"
        wrong += "".join(run(one) for one in tests if one.examples)
    assert not wrong, wrong


def test_an_example_that_is_wrong_is_found() -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong.py", 0)
    assert "Expected:\n    3\nGot:\n    2" in run(test)


ROOT = Path(__file__).resolve().parents[1]
GUIDES = ROOT / "docs" / "guides"
PAGES = ["python.md", *(f"coming-from/{name}.md" for name in ("scikit-learn", "prophet", "argos"))]
GIVEN = (
    "from typing import Any\n\nframe: Any = None\nother: Any = None\npairs: Any = None\nsales: Any = None\n"
)
"""What examples that do not run leave to the reader."""


def strict(folder: Path, *programs: Path) -> str:
    """What mypy finds, with the settings of a user and not those of Weft."""
    pytest.importorskip("mypy", reason="mypy is not installed: make setup-dev")
    settings = folder / "mypy.ini"
    settings.write_text(
        "[mypy]\nfollow_imports = silent\n[mypy-sklearn.*,pandas.*]\nignore_missing_imports = true\n"
    )
    words = ["--strict", "--config-file", str(settings), "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, *map(str, programs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    return done.stdout + done.stderr if done.returncode else ""


def examples(page: str) -> str:
    """The Python of a page as one program."""
    text = (GUIDES / page).read_text("utf-8")
    found = re.findall(
        r"^```(?:\{code-cell\} python3|python)\n(?::tags:[^\n]*\n)?(.*?)^```", text, re.M | re.S
    )
    lines = "\n".join(found).split("\n")
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    return "\n".join([*imports, GIVEN, *(line for line in lines if line not in imports)])


@pytest.mark.slow
def test_a_program_of_a_user_is_strictly_typed(tmp_path: Path) -> None:
    assert strict(tmp_path, ROOT / "tests" / "typing" / "user_program.py") == ""


def programs_of_pages(folder: Path) -> list[Path]:
    found = []
    for page in PAGES:
        found.append(folder / f"{Path(page).stem.replace('-', '_')}_page.py")
        found[-1].write_text(examples(page), "utf-8")
    return found


def test_a_page_gives_all_of_its_python() -> None:
    assert "weft.check(train" in examples("python.md") and "model.plot(test)" in examples("python.md")
    assert "GridSearchCV(Classifier()" in examples("coming-from/scikit-learn.md")


@pytest.mark.slow
def test_the_examples_of_the_pages_are_strictly_typed(tmp_path: Path) -> None:
    assert strict(tmp_path, *programs_of_pages(tmp_path)) == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed: pip install pyright")
def test_pyright_finds_nothing_in_the_examples_either(tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}), "utf-8")
    shutil.copy(ROOT / "tests" / "typing" / "user_program.py", tmp_path)
    programs_of_pages(tmp_path)
    words = ["pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout
