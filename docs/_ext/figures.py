"""{{ demo.beam }} in a page becomes the value of docs/figures.toml, also inside code and tables."""

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # notebooks.py runs without Sphinx
    from sphinx.application import Sphinx

SOURCE = Path(__file__).resolve().parents[1] / "figures.toml"
QUOTED = re.compile(r"\{\{ ([a-z]+)\.([a-z_]+) \}\}")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill(app: "Sphinx", page: str, source: list[str]) -> None:
    """The figures of one page, which is read again when they change."""
    if QUOTED.search(source[0]):
        app.env.note_dependency(str(SOURCE), docname=page)
        source[0] = filled(source[0], page)


def filled(text: str, page: str) -> str:
    """`text` with its figures; a name that figures.toml lacks is an error.

    Args:
        text: Markdown.
        page: its name, for the error.
    """
    figures = tomllib.loads(SOURCE.read_text("utf-8"))

    def value(found: re.Match[str]) -> str:
        group, name = found.groups()
        if name not in figures.get(group, {}):
            raise ValueError(f"docs/{page}: expected a name of docs/figures.toml, got {group}.{name}")
        return str(figures[group][name])

    return QUOTED.sub(value, text)
