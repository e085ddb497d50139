"""Every file that a docstring names after "Read next" exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = sorted({path.parent.relative_to(ROOT) for path in (ROOT / "weft").rglob("*.py")})
OUTSIDE = {"ruamel.yaml", "config.yaml", "weft_onnx.py", "RUN/recipe.yaml", "RUN/README.md", "darts.h"}
"""Named in docstrings, and no files of ours."""

FILES = re.compile(r"(?<![<>\w./-])[\w./-]+\.(?:py|js|cpp|h|yaml|md)\b")


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_files_that_a_docstring_names_are_there(room: Path) -> None:
    missing = []
    for path in (ROOT / room).glob("*.py"):
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        for name in sorted(set(FILES.findall(said)) - OUTSIDE):
            places = (path.parent, path.parent.parent, ROOT / "weft", ROOT)
            if not any((place / name).exists() for place in places):
                missing.append(f"{path.name}: {name}")
    assert missing == []
