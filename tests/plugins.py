"""A package of a user's own, in the working directory, for `--plugin`."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.source import ROOT

GUIDE = (ROOT / "docs" / "guides" / "add-a-task.md").read_text("utf-8")
PAIRS = GUIDE.partition("%%writefile mine/pairs/task.py\n")[2].partition("```")[0]
"""The task of the guide."""

METRIC = (
    (ROOT / "docs/guides/add-a-metric.md").read_text("utf-8").partition("```python")[2].partition("```")[0]
)
"""The metric of its guide."""


def package(home: Path, name: str, files: Mapping[str, str], patch: pytest.MonkeyPatch) -> Path:
    """Write a package with these files into a new folder, which becomes the working directory."""
    for path, text in files.items():
        place = home / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        (place.parent / "__init__.py").touch()
    (home / name).mkdir(parents=True, exist_ok=True)
    (home / name / "__init__.py").touch()
    patch.chdir(home)
    patch.setattr(sys, "path", [*sys.path])
    for known in [one for one in sys.modules if one.split(".")[0] == name]:
        patch.delitem(sys.modules, known)
    return home
