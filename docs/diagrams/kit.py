"""Draws diagrams of cells and architectures as SVG, all in one style.

Boxes hold weights, circles compute element by element, thick lines carry a state from step to step. Colours
come from CSS variables, so a diagram follows the light and dark mode of the page; without them it has its
own. Read next: cells.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

Point = tuple[float, float]
Kind = Literal["layer", "data", "plain", "part"]

STYLE = """
.dg { --ink: var(--pst-color-text-base, #1c2733); --soft: var(--pst-color-text-muted, #55606e);
  --ground: var(--pst-color-background, #ffffff); font: 15px system-ui, sans-serif;
  max-width: 100%; height: auto; }
.dg text { fill: var(--ink); text-anchor: middle; dominant-baseline: central; }
.dg a text { fill: var(--pst-color-link, #0a5d9c); text-decoration: underline; }
.dg .math { font-family: KaTeX_Main, "Times New Roman", serif; font-size: 17px; }
.dg .var { font-style: italic; font-family: KaTeX_Math, "Times New Roman", serif; }
.dg .note { fill: var(--soft); font-size: 13px; }
.dg .title { font-weight: 600; }
.dg .left { text-anchor: start; } .dg .right { text-anchor: end; }
.dg .layer { fill: #0072b2; fill-opacity: .16; stroke: #0072b2; stroke-width: 1.5; }
.dg .data { fill: #e69f00; fill-opacity: .2; stroke: #b87a00; stroke-width: 1.5; }
.dg .part { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }
.dg .plain { fill: none; stroke: var(--soft); stroke-width: 1.2; }
.dg .op { fill: var(--ground); stroke: #009e73; stroke-width: 2; }
.dg .flow { fill: none; stroke: var(--ink); stroke-width: 1.6; }
.dg .state { fill: none; stroke: #d55e00; stroke-width: 3.2; }
.dg .back { fill: none; stroke: #cc79a7; stroke-width: 2; stroke-dasharray: 6 4; }
.dg .faint { fill: none; stroke: var(--soft); stroke-width: 1.1; }
.dg .head { fill: var(--ink); } .dg .head-state { fill: #d55e00; } .dg .head-back { fill: #cc79a7; }
.dg .head-faint { fill: var(--soft); }
.dg .dot { fill: var(--ink); }
.dg .cell { stroke: var(--ground); stroke-width: 1.5; fill: #0072b2; }
""".strip()

LETTER = 8.2
"""About how wide a letter is, in pixels."""
WORDS: dict[str, str] = {}
"""What a diagram says in the language of the page; docs/_ext/languages.py fills it."""


@dataclass
class Diagram:
    """A drawing of a fixed size, filled piece by piece.

    Args:
        width, height: in pixels.
        alt: what a reader who cannot see it should know.
    """

    width: float
    height: float
    alt: str
    pieces: list[str] = field(default_factory=list)
    steps: int = 0

    def box(
        self, x: float, y: float, text: str = "", w: float = 44, h: float = 32, kind: Kind = "layer"
    ) -> None:
        """A rectangle around (x, y): a layer with weights, data, or a dashed part of a model."""
        self.pieces.append(
            f'<rect class="{kind}" x="{x - w / 2:g}" y="{y - h / 2:g}" width="{w:g}" height="{h:g}" '
            f'rx="{4 if kind != "part" else 10}"/>'
        )
        if text:
            self.text(x, y, text, room=w - 8)

    def op(self, x: float, y: float, text: str, r: float = 13) -> None:
        """A circle that computes element by element."""
        self.pieces.append(f'<circle class="op" cx="{x:g}" cy="{y:g}" r="{r:g}"/>')
        self.text(x, y, text)

    def dot(self, x: float, y: float) -> None:
        """Where a line branches."""
        self.pieces.append(f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="3"/>')

    def text(self, x: float, y: float, text: str, style: str = "", room: float | None = None) -> None:
        """Words, with formulas between dollars: "gate $i_t$"; lines are split at newlines.

        A translation that is longer than `room` (or than the diagram) is set narrower.
        """
        lines = WORDS.get(text, text).split("\n")
        translated = WORDS.get(text, text) != text
        if room is None:
            free = {"left": self.width - x, "right": x}.get(style.split(" ")[-1])
            room = (2 * min(x, self.width - x) if free is None else free) - 8
        for number, line in enumerate(lines):
            at = y + 18 * (number - (len(lines) - 1) / 2)
            narrow = ""
            if translated and LETTER * len(line.replace("$", "")) > room:
                narrow = f' textLength="{room:g}" lengthAdjust="spacingAndGlyphs"'
            self.pieces.append(f'<text class="{style}" x="{x:g}" y="{at:g}"{narrow}>{_marked(line)}</text>')

    def line(self, *points: Point, kind: str = "flow", arrow: bool = True, bend: float = 8) -> None:
        """A line through points with rounded corners and an arrow head at its end."""
        self.pieces.append(f'<path class="{kind}" d="{_path(points, bend, 7 if arrow else 0)}"/>')
        if arrow:
            style = "head" if kind == "flow" else f"head-{kind}"
            self.pieces.append(f'<path class="{style}" d="{_head(points[-2], points[-1], kind)}"/>')

    def curve(self, begin: Point, end: Point, rise: float, kind: str = "flow") -> None:
        """An arc with an arrow head; `rise` is how far its middle lies above the straight line."""
        (x0, y0), (x1, y1) = begin, end
        control = ((x0 + x1) / 2, (y0 + y1) / 2 - 2 * rise)
        self.pieces.append(
            f'<path class="{kind}" d="M{x0:g},{y0:g} Q{control[0]:g},{control[1]:g} {x1:g},{y1:g}"/>'
        )
        style = "head" if kind == "flow" else f"head-{kind}"
        self.pieces.append(f'<path class="{style}" d="{_head(control, end, kind)}"/>')

    def grid(self, x: float, y: float, weights: Sequence[Sequence[float]], size: float = 22) -> None:
        """A matrix of squares, darker for larger weights from 0 to 1; (x, y) is its upper left corner."""
        for row, values in enumerate(weights):
            for column, value in enumerate(values):
                self.pieces.append(
                    f'<rect class="cell" x="{x + column * size:g}" y="{y + row * size:g}" width="{size:g}" '
                    f'height="{size:g}" fill-opacity="{0.06 + 0.9 * value:.2f}"/>'
                )

    def step(self) -> None:
        """What follows appears at the next step of a slide; elsewhere everything is visible."""
        self.pieces.append(f'</g><g class="fragment" data-fragment-index="{self.steps}">')
        self.steps += 1

    def svg(self) -> str:
        """The SVG element."""
        inside = "\n".join(["<g>", *self.pieces, "</g>"])
        size = f"{self.width:g} {self.height:g}"
        return (
            f'<svg class="dg" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{self.width:g}" role="img" aria-label="{escape(WORDS.get(self.alt, self.alt))}">\n'
            f"<style>{STYLE}</style>\n{inside}\n</svg>"
        )


def _marked(text: str) -> str:
    """Plain words, and formulas between dollars with _ and ^ as in LaTeX."""
    parts = text.split("$")
    return "".join(_formula(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def _formula(text: str) -> str:
    found = []
    for mark, braced, single, plain in re.findall(r"([_^])(?:\{([^}]*)\}|(.))|([^_^]+)", text):
        if plain:
            found.append(_letters(plain))
            continue
        shift = "0.32em" if mark == "_" else "-0.45em"
        back = "-0.224em" if mark == "_" else "0.315em"  # of the full size
        inside = _letters(braced or single)
        found.append(f'<tspan dy="{shift}" font-size="70%">{inside}</tspan><tspan dy="{back}">\u200b</tspan>')
    return f'<tspan class="math">{"".join(found)}</tspan>'


def _letters(text: str) -> str:
    """Latin letters in italics, as variables are; everything else upright."""
    return re.sub(r"[A-Za-zα-ω]+", lambda m: _variable(m[0]), escape(text))


def _variable(word: str) -> str:
    upright = ("tanh", "softmax", "exp", "log", "amp", "lt", "gt")
    return word if word in upright else f'<tspan class="var">{word}</tspan>'


def _path(points: Sequence[Point], bend: float, short: float) -> str:
    """Straight lines with quarter turns of radius `bend`; the last one ends `short` before its point."""
    ends = list(points)
    if short:
        ends[-1] = _towards(points[-1], points[-2], short)
    found = [f"M{ends[0][0]:g},{ends[0][1]:g}"]
    for before, here, after in zip(ends, ends[1:], ends[2:], strict=False):
        enter, leave = _towards(here, before, bend), _towards(here, after, bend)
        found.append(f"L{enter[0]:g},{enter[1]:g} Q{here[0]:g},{here[1]:g} {leave[0]:g},{leave[1]:g}")
    return " ".join([*found, f"L{ends[-1][0]:g},{ends[-1][1]:g}"])


def _towards(begin: Point, end: Point, distance: float) -> Point:
    """The point `distance` from `begin` on the way to `end`, at most half of the way."""
    dx, dy = end[0] - begin[0], end[1] - begin[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    share = min(distance / length, 0.5)
    return round(begin[0] + dx * share, 2), round(begin[1] + dy * share, 2)


def _head(before: Point, tip: Point, kind: str) -> str:
    dx, dy = tip[0] - before[0], tip[1] - before[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    ux, uy = dx / length, dy / length
    long, wide = (11, 6) if kind == "state" else (9, 4)
    x, y = tip[0] - long * ux, tip[1] - long * uy
    corners = (tip, (x - wide * uy, y + wide * ux), (x + wide * uy, y - wide * ux))
    return "M" + " L".join(f"{round(a, 2):g},{round(b, 2):g}" for a, b in corners) + " Z"
