"""The directive `{diagram} lstm`: a diagram of docs/diagrams inside the page; it follows dark mode."""

import importlib
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

FOLDER = Path(__file__).resolve().parents[1] / "diagrams"
FILES = ("cells", "models", "attention", "tasks")


class DiagramDirective(Directive):
    """A figure with the diagram of a name, and its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        figure = nodes.figure(classes=["diagram"])
        figure += nodes.raw("", drawn(name), format="html")
        if self.content:
            text, messages = self.state.inline_text(" ".join(self.content), self.lineno)
            figure += nodes.caption("", "", *text)
            return [figure, *messages]
        return [figure]


def drawn(name: str) -> str:
    """The SVG of a diagram by the name of its function."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    for file in FILES:
        made = getattr(importlib.import_module(file), name.replace("-", "_"), None)
        if made is not None:
            return str(made().svg())
    raise ExtensionError(
        f"no diagram is named {name!r}; docs/diagrams has its functions in {', '.join(FILES)}"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("diagram", DiagramDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
