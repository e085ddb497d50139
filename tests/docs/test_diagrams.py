"""Diagrams of the course: what a reader sees are letters, no commands of LaTeX."""

import importlib
import inspect
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "diagrams"


@pytest.mark.parametrize("file", ["attention", "cells", "models", "tasks"])
def test_a_diagram_has_letters_and_a_description(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module(file)
    drawn = {
        name: make()
        for name, make in inspect.getmembers(module, inspect.isfunction)
        if make.__module__ == file and not name.startswith("_") and not inspect.signature(make).parameters
    }
    assert drawn
    assert [name for name, one in drawn.items() if "\\" in one.svg() or len(one.alt) < 30] == []
