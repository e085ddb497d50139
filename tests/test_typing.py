"""The public names have types: a program of a user, and the examples of the pages, pass mypy --strict."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    settings.write_text("[mypy]\nfollow_imports = silent\n[mypy-sklearn.*]\nignore_missing_imports = true\n")
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
    found = re.findall(r"^```(?:\{code-cell\} python3|python)\n(?::tags:.*\n)?(.*?)^```", text, re.M | re.S)
    lines = "\n".join(found).split("\n")
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    return "\n".join([*imports, GIVEN, *(line for line in lines if line not in imports)])


@pytest.mark.slow
def test_a_program_of_a_user_is_strictly_typed(tmp_path: Path) -> None:
    assert strict(tmp_path, ROOT / "tests" / "typing" / "user_program.py") == ""


@pytest.mark.slow
def test_the_examples_of_the_pages_are_strictly_typed(tmp_path: Path) -> None:
    programs = []
    for page in PAGES:
        programs.append(tmp_path / f"{Path(page).stem.replace('-', '_')}_page.py")
        programs[-1].write_text(examples(page), "utf-8")
    assert all(one.stat().st_size > 200 for one in programs)
    assert strict(tmp_path, *programs) == ""
