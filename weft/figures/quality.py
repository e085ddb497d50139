"""A bar chart of scores by sentence length, the figure that made attention famous.

Read next: ../metrics/bylength.py, which computes the rows; picture.py, which saves.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from weft.errors import DataError
from weft.figures.axes import bar_axes, blank
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.letters import printable
from weft.metrics.bylength import LengthRow


def quality_by_length(
    rows: Sequence[LengthRow], *, title: str, x: str = "words in the source sentence"
) -> Figure:
    """Bars of one metric by source length, with intervals and counts."""
    scores = [row.score for row in rows if row.score is not None]
    if not scores:
        raise DataError("quality by length: expected at least one score, got none")
    figure = blank(max(6.4, 0.9 + 0.34 * len(rows)), 4.2, layout=None)
    axes = figure.add_axes((0.1, 0.2, 0.88, 0.68))
    for place, row in enumerate(rows):
        score = row.score
        if score is None:
            continue
        axes.bar(place, score.value, 0.72, color=BARS[0], linewidth=0)
        top = score.value
        if score.low is not None and score.high is not None:
            axes.vlines(place, score.low, score.high, color=INK, linewidth=1, alpha=0.7)
            top = max(top, score.high)
        text = f"{score.value:.1f}" if abs(score.value) > 1 else f"{score.value:.3f}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        label = axes.annotate(text, (place, top), (0, 3), textcoords="offset points", ha="center")
        label.set(fontsize=8, color=INK, bbox=box)
    axes.set_xticks(range(len(rows)), [_tick(row) for row in rows])
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylim(0, None)
    axes.margins(y=0.12)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(scores[0].name, color=INK)
    bar_axes(axes)
    axes.set_title(printable(title), fontsize=13, color=INK, pad=10, parse_math=False)
    note = "\n".join(dict.fromkeys(score.signature for score in scores))
    figure.text(0.1, 0.0, note, fontsize=6.5, color=FAINT, va="bottom", parse_math=False)
    return figure


def _tick(row: LengthRow) -> str:
    label = row.label.replace("<=", "≤ ").replace(">", "> ").replace("-", "–")
    return f"{label}\nn = {row.sentences:,}"
