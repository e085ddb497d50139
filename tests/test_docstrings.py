"""Every file that a docstring names after "Read next" exists."""

import ast
import re
from pathlib import Path

from tests.source import ROOT, broken, parsed, text_of

OUTSIDE = {"ruamel.yaml", "config.yaml", "weft_onnx.py", "RUN/recipe.yaml", "RUN/README.md", "darts.h"}
"""Named in docstrings, and no files of ours."""

FILES = re.compile(r"(?<![<>\w./-])[\w./-]+\.(?:py|js|cpp|h|yaml|md)\b")


def missing(path: Path) -> list[str]:
    """Files that the docstring of a file names, and that are not there."""
    said = ast.get_docstring(parsed(text_of(path))) or ""
    places = (path.parent, path.parent.parent, ROOT / "weft", ROOT)
    names = sorted(set(FILES.findall(said)) - OUTSIDE)
    return [name for name in names if not any((place / name).exists() for place in places)]


def test_files_that_a_docstring_names_are_there() -> None:
    assert broken(missing) == []
