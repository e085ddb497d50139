"""The directive `{diagram} lstm`: a diagram of docs/diagrams inside the page; it follows dark mode."""

from docutils import nodes
from docutils.parsers.rst import Directive
from named import drawn
from sphinx.application import Sphinx


class DiagramDirective(Directive):
    """A figure with the diagram of a name, and its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        figure = nodes.figure(classes=["diagram"])
        figure += nodes.raw("", drawn(name), format="html")
        if self.content:
            words = " ".join(self.content)
            text, messages = self.state.inline_text(words, self.lineno)
            caption = nodes.caption(words, "", *text)
            caption.source, caption.line = self.state_machine.get_source_and_line(self.lineno)
            figure += caption
            return [figure, *messages]
        return [figure]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("diagram", DiagramDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
