"""A bar chart of scores by sentence length, the figure that made attention famous.

Read next: ../metrics/bylength.py, which computes the rows; picture.py, which saves.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from weft.errors import DataError
from weft.figures.axes import bar_axes, blank, legend
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.letters import printable
from weft.metrics.bylength import LengthRow
from weft.metrics.metric import MetricScore

_VALUES_UP_TO = 4  # runs; with more, bars are too narrow for numbers


def quality_by_length(
    runs: Mapping[str, Sequence[LengthRow]], *, title: str, x: str = "words in the source sentence"
) -> Figure:
    """Bars of one metric by source length, one colour per run, with intervals and counts."""
    _check(runs)
    names = list(runs)
    rows = runs[names[0]]
    figure = blank(max(6.4, 0.9 + 0.34 * len(rows) * len(names)), 4.2, layout=None)
    axes = figure.add_axes((0.1, 0.2, 0.88, 0.68))
    wide = 0.78 / len(names)
    for number, name in enumerate(names):
        middle = np.arange(len(rows)) - 0.39 + wide * (number + 0.5)
        _bars(axes, middle, wide * 0.92, runs[name], BARS[number % len(BARS)], len(names) <= _VALUES_UP_TO)
    axes.set_xticks(range(len(rows)), [_tick(runs, number) for number in range(len(rows))])
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylim(0, None)
    axes.margins(y=0.12)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(_scores(runs)[0].name, color=INK)
    bar_axes(axes)
    axes.set_title(
        printable(title), fontsize=13, color=INK, pad=28 if len(names) > 1 else 10, parse_math=False
    )
    if len(names) > 1:
        _legend(axes, names)
    note = "\n".join(dict.fromkeys(score.signature for score in _scores(runs)))
    figure.text(0.1, 0.0, note, fontsize=6.5, color=FAINT, va="bottom", parse_math=False)
    return figure


def _check(runs: Mapping[str, Sequence[LengthRow]]) -> None:
    scores = _scores(runs)
    if not scores:
        raise DataError(
            f"quality by length: expected at least one run with scores, got {len(runs)} without any"
        )
    for what, kinds in (
        ("bins", {", ".join(row.label for row in rows) for rows in runs.values()}),
        ("metrics", {score.name for score in scores}),
    ):
        if len(kinds) > 1:
            found = " and ".join(sorted(kinds))
            raise DataError(f"quality by length: expected runs with the same {what}, got {found}")


def _scores(runs: Mapping[str, Sequence[LengthRow]]) -> list[MetricScore]:
    return [row.score for rows in runs.values() for row in rows if row.score is not None]


def _bars(
    axes: Axes, middle: np.ndarray, wide: float, rows: Sequence[LengthRow], colour: str, values: bool
) -> None:
    for place, row in zip(middle, rows, strict=True):
        score = row.score
        if score is None:
            continue
        axes.bar(place, score.value, wide, color=colour, linewidth=0)
        top = score.value
        if score.low is not None and score.high is not None:
            axes.vlines(place, score.low, score.high, color=INK, linewidth=1, alpha=0.7)
            top = max(top, score.high)
        if values:
            text = f"{score.value:.1f}" if abs(score.value) > 1 else f"{score.value:.3f}"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            label = axes.annotate(text, (place, top), (0, 3), textcoords="offset points", ha="center")
            label.set(fontsize=8, color=INK, bbox=box)


def _tick(runs: Mapping[str, Sequence[LengthRow]], number: int) -> str:
    counts = dict.fromkeys(f"{rows[number].sentences:,}" for rows in runs.values())
    label = next(iter(runs.values()))[number].label.replace("<=", "≤ ").replace(">", "> ").replace("-", "–")
    return f"{label}\nn = {' / '.join(counts)}"


def _legend(axes: Axes, names: Sequence[str]) -> None:
    handles = [Patch(color=BARS[number % len(BARS)]) for number in range(len(names))]
    shown = [printable(name) for name in names]
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": min(len(names), 4)}
    legend(axes, handles, shown, fontsize=9, handlelength=1, handleheight=1, **place)
