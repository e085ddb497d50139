"""Scores as points with intervals, compared with baselines. Read next: picture.py."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from weft.errors import DataError
from weft.figures.axes import bar_axes, blank, legend
from weft.figures.colours import BARS, INK
from weft.figures.letters import printable
from weft.metrics.scored import ScoreWithBaselines

MARKS = "|xd^v"


def intervals(scores: Sequence[ScoreWithBaselines], *, title: str, shared: bool = False) -> Figure:
    """One row per score: a point, a line for its 95 % interval, and a mark for each baseline."""
    if not scores:
        raise DataError("intervals: expected at least 1 score, got 0")
    figure = blank(8.2, 1.3 + (0.42 if shared else 0.75) * len(scores))
    rows = figure.subplots(len(scores), 1, sharex=shared, squeeze=False)[:, 0]
    names = list(dict.fromkeys(name for one in scores for name in one.baselines))
    for number, (axes, one) in enumerate(zip(rows, scores, strict=True)):
        score = one.score
        if score.low is not None and score.high is not None:
            axes.plot([score.low, score.high], [0, 0], color=BARS[0], linewidth=4, alpha=0.35)
        axes.plot([score.value], [0], "o", color=BARS[0], label="this run", clip_on=False, zorder=3)
        for name, value in one.baselines.items():
            place = names.index(name)
            axes.plot(
                [value], [0], MARKS[place % len(MARKS)], color=INK, markersize=9, label=name, clip_on=False
            )
        axes.set_yticks([0], [printable(score.name)], fontsize=9)
        axes.set_ylim(-1, 1)
        axes.margins(x=0.1)
        if min([score.value, *one.baselines.values()]) >= 0:
            axes.set_xlim(left=0)
        bar_axes(axes, "x")
        axes.tick_params(labelsize=8, labelbottom=number + 1 == len(scores) or not shared)
    handles: dict[str, Any] = {}
    for axes in rows:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    names = [name if name == "this run" else f"baseline: {printable(name)}" for name in handles]
    legend(figure, list(handles.values()), names, loc="outside lower left")
    figure.suptitle(printable(title), fontsize=11, color=INK, parse_math=False)
    return figure
