"""The diagrams of docs/diagrams by name, for pages, notebooks and slides; needs no Sphinx."""

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / "diagrams"
FILES = ("cells", "models", "attention", "tasks")


def drawn(name: str) -> str:
    """The SVG of a diagram by the name of its function."""
    for file in FILES:
        made = getattr(_module(file), name.replace("-", "_"), None)
        if made is not None:
            return str(made().svg())
    raise ValueError(f"no diagram is named {name!r}; docs/diagrams has its functions in {', '.join(FILES)}")


def every() -> list[str]:
    """The SVG of every diagram."""
    made = [
        function()
        for file in FILES
        for name, function in inspect.getmembers(_module(file), inspect.isfunction)
        if function.__module__ == file and not name.startswith("_")
    ]
    return [diagram.svg() for diagram in made]


def kit() -> ModuleType:
    """The module that draws them."""
    return _module("kit")


def _module(name: str) -> ModuleType:
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)
