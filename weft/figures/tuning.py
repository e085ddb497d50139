"""Figures of a search over settings: the scores of its trials, and which settings matter.

Read next: picture.py, which saves them.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from weft.errors import DataError
from weft.figures.axes import blank, legend, plain_axes
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.letters import printable
from weft.wording import plural

MARKS = {
    "o": "trained to its end",
    "x": "ended early",
    "v": "ended early, below the picture",
    "^": "ended early, above the picture",
}


def history_figure(trials: Sequence[tuple[int, float, bool]], *, metric: str, higher: bool) -> Figure:
    """The score of each trial, and the best score so far as a line.

    Trials that ended early may be so much worse that the others would look alike; they are drawn at the edge.
    """
    if not trials:
        raise DataError("history_figure: expected at least 1 trial with a score, got 0")
    figure = blank(7.4, 3.6, dpi=120)
    axes = figure.add_subplot()
    best: list[float] = []
    for _, score, _ in trials:
        best.append(score if not best else (max if higher else min)(best[-1], score))
    axes.step([number for number, _, _ in trials], best, where="post", color=BARS[0], label="best so far")
    low, high = _shown(trials)
    kinds = [(number, score, "o" if whole else "x") for number, score, whole in trials]
    kinds = [
        (n, low, "v") if s < low else (n, high, "^") if s > high else (n, s, mark) for n, s, mark in kinds
    ]
    for mark, name in MARKS.items():
        points = [(number, score) for number, score, own in kinds if own == mark]
        if points:
            colour = BARS[0] if mark == "o" else FAINT
            axes.plot(*zip(*points, strict=True), mark, color=colour, label=name, clip_on=False)
    if low < high:
        axes.set_ylim(low, high)
    axes.set_xlabel("trial; 0 is the recipe as it is", color=INK, fontsize=9)
    axes.set_ylabel(printable(metric), color=INK, fontsize=9, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_axes(axes)
    legend(axes)
    return figure


def importance_figure(importance: Mapping[str, float], *, metric: str, trials: int) -> Figure:
    """How much each setting matters, as bars; the most important one on top."""
    if not importance:
        raise DataError("importance_figure: expected at least 1 setting, got 0")
    figure = blank(7.4, 1.1 + 0.32 * len(importance), dpi=120)
    axes = figure.add_subplot()
    ordered = sorted(importance.items(), key=lambda one: one[1])
    axes.barh(range(len(ordered)), [share for _, share in ordered], color=BARS[0], height=0.6)
    axes.set_yticks(
        range(len(ordered)), [printable(name) for name, _ in ordered], fontsize=9, parse_math=False
    )
    about = f"importance for {printable(metric)}, from {plural(trials, 'trial')} trained to their end"
    axes.set_xlabel(about, color=INK, fontsize=9, parse_math=False)
    axes.set_xlim(left=0)
    plain_axes(axes)
    return figure


def _shown(trials: Sequence[tuple[int, float, bool]]) -> tuple[float, float]:
    """The ends of the axis: the scores of the whole trials, and as much again below and above."""
    scores = [score for _, score, _ in trials]
    whole = [score for _, score, ended in trials if ended] or scores
    margin = (max(scores) - min(scores)) / 10
    span = max(max(whole) - min(whole), margin)
    low, high = max(min(scores) - margin, min(whole) - span), min(max(scores) + margin, max(whole) + span)
    return low, high
