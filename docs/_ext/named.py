"""The diagrams of docs/diagrams by name, for pages, notebooks and slides; needs no Sphinx."""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "diagrams"
FILES = ("cells", "models", "attention", "tasks")


def drawn(name: str) -> str:
    """The SVG of a diagram by the name of its function."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    for file in FILES:
        made = getattr(importlib.import_module(file), name.replace("-", "_"), None)
        if made is not None:
            return str(made().svg())
    raise ValueError(f"no diagram is named {name!r}; docs/diagrams has its functions in {', '.join(FILES)}")
