"""The directive `equation`: a card with a formula, its code, its test and, where there is one, its picture.

    :::{equation} C5 LSTM
    :code: weft/nn/cells/lstm.py::LSTM.step
    :test: tests/oracles/test_recurrent.py::test_a_cell_is_its_equation
    :picture: ../pictures/lstm.svg The gates of an LSTM around its cell

    $$ c_t = f_t c_{t-1} + i_t g_t $$
    :::

A page writes it as plain Markdown, from a bold id and name to a rule, which here becomes the directive.
tests/oracles/test_equations.py sees that code and tests exist.
"""

import re
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sources import ROOT, link
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_design.shared import create_component

CLAIMS = {
    "A1": (6,), "A4": (7,), "A5": (7, 13), "A7": (13,), "A10": (13,), "C1": (2,), "C3": (4, 14), "C5": (12,),
    "C7": (3,), "C8": (3,), "C9": (2,), "D2": (11,), "D3": (5,), "D5": (5,), "G1": (2,), "G2": (2,),
    "G3": (12,), "M1": (1,), "M5": (8,), "M7": (10,), "M8": (9,), "M15": (2,),
}  # fmt: skip
"""Which claims show an equation at work."""


PLAIN = re.compile(
    r"^\*\*(?P<name>[A-Z]\d+.+)\*\* \(code `(?P<code>.+)`, test `(?P<test>.+)`\)\n\n"
    r"(?:!\[(?P<alt>.+)\]\((?P<uri>.+)\)\n\n)?(?P<body>(?s:.+?))\n\n---$",
    re.MULTILINE,
)
"""A card in plain Markdown."""


def as_cards(app: Sphinx, page: str, source: list[str]) -> None:
    """Make directives of the cards of a page."""

    def directive(card: re.Match[str]) -> str:
        picture = f":picture: {card['uri']} {card['alt']}\n" if card["uri"] else ""
        head = f":::{{equation}} {card['name']}\n:code: {card['code']}\n:test: {card['test']}\n{picture}"
        return f"{head}\n{card['body']}\n:::"

    source[0] = PLAIN.sub(directive, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_object_type("equationcard", "eqn", objname="equation")
    app.add_directive("equation", Equation)
    app.connect("source-read", as_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Equation(SphinxDirective):
    """One card."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = dict.fromkeys(("code", "test", "picture"), directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """The card."""
        parts = re.match(r"((?:[A-Z]\d+(?:, )?)+) (.+)", self.arguments[0])
        if not parts:
            raise self.error("expected an id and a name, such as C5 LSTM")
        card = create_component("card", ["sd-card", "equation-card"])
        body = create_component("card-body", ["sd-card-body"])
        card += body
        self._named(card)
        title = nodes.paragraph("", "", nodes.strong("", parts[2]), nodes.Text(" "))
        title += nodes.inline("", parts[1], classes=["equation-id"])
        body += title
        self.state.nested_parse(self.content, self.content_offset, body)
        if "picture" in self.options:
            body += self._picture()
        body += self._links(parts[1].split(", ")[0])
        return [card]

    def _named(self, card: nodes.Element) -> None:
        name = self.arguments[0]
        place = nodes.make_id(f"equation-{name}")
        card["ids"].append(place)
        self.env.domains["std"].note_object("equationcard", name, place, location=card)  # type: ignore[attr-defined]

    def _picture(self) -> nodes.image:
        uri, _, alt = self.options["picture"].partition(" ")
        return nodes.image(uri=uri, alt=alt, classes=["equation-picture"])

    def _links(self, number: str) -> nodes.paragraph:
        """Code, test and claims in one line."""
        up = "../" * self.env.docname.count("/")
        line = nodes.paragraph(classes=["equation-links"])
        for kind in ("code", "test"):
            file, _, symbol = self.options[kind].partition("::")
            self.env.note_dependency(str(ROOT / file))
            try:
                found = link(symbol, file, symbol, up)
            except (LookupError, OSError) as error:
                raise self.error(f"{kind}: {error}") from None
            line += [nodes.Text(f"{kind.capitalize()} "), found, nodes.Text(" ")]
        for claim in CLAIMS.get(number, ()):
            uri = f"{up}claims.html#claim-{claim}"
            line += nodes.reference("", f"Claim {claim}", internal=True, refuri=uri)
            line += nodes.Text(" ")
        return line
