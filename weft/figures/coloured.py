"""A text with words coloured by weight; darker means more important.

Read next: colours.py.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from weft.errors import ShapeError
from weft.figures.axes import printable
from weft.figures.colours import FAINT, GRID, INK, ink_on, weight_colours
from weft.figures.fonts import readable

WIDE = 8.0  # inches
LINE = 0.36
MOST = 300
"""Maximum number of words drawn."""


def coloured_text(
    words: Sequence[str], weights: np.ndarray, *, title: str, note: str = "", top: float | None = None
) -> Figure:
    """Words on coloured backgrounds; weights of at least 0.1 are also printed, in percent."""
    if len(words) != len(weights) or not len(words):
        raise ShapeError(
            f"coloured text: expected one weight for each word, got {len(words)} words and "
            f"{len(weights)} weights"
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ShapeError(
            f"coloured text: expected weights of at least 0, got {weights.min()} to {weights.max()}"
        )
    shown = [printable(word) for word in words[:MOST]]
    if len(words) > MOST:
        note = f"{note}  (the first {MOST} of {len(words)} words)"
    places, lines = _places(shown)
    high = LINE * (2 * lines) + 1.15
    figure = Figure(figsize=(WIDE, high), facecolor="white", dpi=100)
    scale = Normalize(0, max(float(weights.max()), 1e-9) if top is None else top)
    colours = ScalarMappable(scale, weight_colours())
    figure.text(0.01, 1 - 0.12 / high, printable(title), fontsize=12, color=INK, va="top", parse_math=False)
    for word, weight, (left, line) in zip(shown, weights.tolist(), places, strict=False):
        behind = colours.to_rgba(weight)
        top = 1 - (0.55 + 2 * LINE * line) / high
        box = {"facecolor": behind[:3], "edgecolor": "none", "pad": 2.5}
        figure.text(
            left / WIDE,
            top,
            word,
            fontsize=13,
            va="top",
            color=ink_on(behind),
            bbox=box,
            parse_math=False,
        )
        if weight >= 0.1:
            figure.text(
                left / WIDE, top - 0.3 / high, f"{100 * weight:.0f} %", fontsize=7, va="top", color=FAINT
            )
    _scale(figure, colours, high)
    if note:
        figure.text(
            0.01, 0.02 / high, printable(note), fontsize=7, color=FAINT, va="bottom", parse_math=False
        )
    return figure


def _scale(figure: Figure, colours: ScalarMappable, high: float) -> None:
    """The colour scale with numbers, at the lower left."""
    axes = figure.add_axes((0.1 / WIDE, 0.42 / high, 2.2 / WIDE, 0.11 / high))
    ticks = np.linspace(0, colours.norm.vmax or 1, 3)
    bar = figure.colorbar(colours, cax=axes, orientation="horizontal", ticks=ticks)
    bar.set_ticklabels([f"{100 * tick:.3g} %" for tick in ticks])
    bar.outline.set_edgecolor(GRID)
    axes.tick_params(labelsize=7, colors=FAINT, length=2)


def _places(words: Sequence[str]) -> tuple[list[tuple[float, int]], int]:
    """The position of each word (inches from the left, line), and the number of lines."""
    measure = Figure(figsize=(1, 1), dpi=100)
    texts = [measure.text(0, 0, word, fontsize=13, parse_math=False) for word in words]
    with readable(measure, keep_text=False, warn=False):
        renderer = FigureCanvasAgg(measure).get_renderer()
        widths = [text.get_window_extent(renderer).width / 100 for text in texts]
    places, left, line = [], 0.1, 0
    for width in widths:
        if left > 0.1 and left + width > WIDE - 0.1:
            left, line = 0.1, line + 1
        places.append((left, line))
        left += width + 0.12
    return places, line + 1
