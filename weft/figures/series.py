"""Figure of a forecast after its past, with bands if the model predicts quantiles."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator
from matplotlib.figure import Figure

from weft.figures.colours import BARS, FAINT, GRID, INK
from weft.figures.records import Forecasted

DAYS = np.timedelta64(3, "D")
"""Figures of longer spans have ticks at days instead of hours."""


def forecast_figure(one: Forecasted) -> Figure:
    """The past in black, the forecast in colour; bands are darker towards the middle."""
    figure = Figure(figsize=(8, 3.4), dpi=120, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.plot(one.past_times, one.past, color=INK, linewidth=1.2, label="measured")
    if one.quantiles is not None:
        levels = one.levels
        for outer in range(len(levels) // 2):
            low, high = one.quantiles[:, outer], one.quantiles[:, -1 - outer]
            share = levels[-1 - outer] - levels[outer]
            axes.fill_between(
                one.times,
                low,
                high,
                color=BARS[0],
                alpha=0.2,
                linewidth=0,
                label=f"{100 * share:.0f} % band",
            )
    axes.plot(one.times, one.best, color=BARS[0], linewidth=1.8, label="forecast")
    if one.actual is not None:
        axes.plot(one.times, one.actual, color=INK, linewidth=1, linestyle=":", label="actual")
    axes.axvline(one.past_times[-1], color=FAINT, linewidth=0.8, linestyle=":")
    axes.set_title(one.name, color=INK, fontsize=11, parse_math=False)
    axes.grid(color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=FAINT, labelsize=8)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="upper left")
    mark_dates(axes, one.times[-1] - one.past_times[0])
    return figure


def mark_dates(axes: Axes, span: Any) -> None:
    """Put evenly spaced ticks at days on a time axis, if it is long enough."""
    if isinstance(span, np.timedelta64) and span > DAYS:
        # Ticks at every second day of a month would make the labels of the 31st and the 1st overlap.
        axes.xaxis.set_major_locator(AutoDateLocator(interval_multiples=False))
