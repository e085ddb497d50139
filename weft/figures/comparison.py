"""Figures of a comparison: scores with intervals; its curves are the charts of its report.

Read next: picture.py, which saves them; ../inspect/comparing/report.py.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from weft.errors import DataError
from weft.figures.axes import blank, legend, plain_axes
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.letters import printable
from weft.metrics.scored import ScoreWithBaselines

LINES = ("--", ":", "-.")


class VariantScore(NamedTuple):
    """The score of a variant, its interval, and the scores of its single trainings."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    seeds: Sequence[float]


class ScorePanel(NamedTuple):
    """One score of all variants, and of the baselines by their names."""

    name: str
    points: Sequence[VariantScore]
    baselines: Mapping[str, float]


def run_figure(scores: Sequence[ScoreWithBaselines], *, title: str, shared: bool = False) -> Figure:
    """A panel for each score of one run; `shared`: all on one scale."""
    own = [VariantScore("this run", one.value, one.score.low, one.score.high, ()) for one in scores]
    panels = [
        ScorePanel(one.score.name, [point], one.baselines) for one, point in zip(scores, own, strict=True)
    ]
    return scores_figure(panels, title=title, shared=shared)


def scores_figure(panels: Sequence[ScorePanel], *, title: str, shared: bool = False) -> Figure:
    """A panel for each score with a row for each variant: mean, interval, and a mark for each training."""
    if not panels:
        raise DataError("scores_figure: expected at least 1 score, got 0")
    heights = [0.9 + 0.3 * max(1, len(one.points)) for one in panels]
    figure = blank(7.4, 0.4 + sum(heights), dpi=120)
    rows = figure.subplots(len(panels), 1, squeeze=False, sharex=shared, height_ratios=heights)[:, 0]
    for axes, one in zip(rows, panels, strict=True):
        for place, point in enumerate(one.points):
            if point.low is not None and point.high is not None:
                axes.plot([point.low, point.high], [place, place], color=BARS[0], linewidth=4, alpha=0.35)
            axes.plot([point.value], [place], "o", color=BARS[0], zorder=3)
            if len(point.seeds) > 1:
                axes.plot(point.seeds, [place] * len(point.seeds), "|", color=INK, markersize=9, zorder=4)
        for number, (name, value) in enumerate(one.baselines.items()):
            label = f"baseline: {printable(name)}"
            axes.axvline(value, color=FAINT, linestyle=LINES[number % len(LINES)], linewidth=1, label=label)
        names = [printable(point.name) for point in one.points]
        axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(printable(one.name), fontsize=9, color=INK, parse_math=False)
        plain_axes(axes)
        axes.tick_params(axis="y", labelcolor=INK)
        if one.baselines:
            legend(axes, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.suptitle(printable(title), fontsize=10, color=INK, parse_math=False)
    return figure
