"""The error of a forecaster at each step ahead, next to the baselines, and one window of the data."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weft.figures.colours import BARS, FAINT, GRID, INK
from weft.figures.series import mark_dates
from weft.tasks.forecast.units import LEVELS

if TYPE_CHECKING:
    from weft.tasks.forecast.evaluation import ForecastEvaluation


def figure(evaluation: "ForecastEvaluation", name: str) -> Figure:
    """Errors by steps ahead above, one window below."""
    figure = Figure(figsize=(9, 6.4), dpi=120, facecolor="white", layout="constrained")
    above, below = figure.subplots(2, 1)
    steps = np.arange(1, len(evaluation.model.by_step) + 1)
    above.plot(steps, evaluation.model.by_step, color=BARS[0], linewidth=2, label=name)
    for number, (baseline, errors) in enumerate(evaluation.baselines.items()):
        above.plot(
            steps,
            errors.by_step,
            color=INK,
            linewidth=1,
            linestyle=("-", "--", ":")[number % 3],
            label=baseline,
        )
    above.set_xlabel("steps ahead", color=INK)
    above.set_ylabel("mean squared error (scaled)", color=INK)
    above.set_ylim(bottom=0)
    above.set_title(evaluation.title, color=INK, fontsize=10, parse_math=False)
    one = evaluation.example
    below.plot(one.past_times, one.past, color=INK, linewidth=1, label="past")
    # starts at the last value of the past, so that the line has no gap
    ahead = np.concatenate([one.past_times[-1:], one.times])
    actual, said = (np.concatenate([one.past[-1:], each]) for each in (one.actual, one.best))
    below.plot(ahead, actual, color=INK, linewidth=1, linestyle=":", label="actual")
    below.plot(ahead, said, color=BARS[0], linewidth=1.8, label="forecast")
    if one.quantiles is not None:
        low, high = (np.concatenate([one.past[-1:], one.quantiles[:, at]]) for at in (0, -1))
        band = f"quantiles {LEVELS[0]:g} to {LEVELS[-1]:g}"
        below.fill_between(ahead, low, high, color=BARS[0], alpha=0.2, linewidth=0, label=band)
    below.set_xlabel(f"one window of {one.name}", color=INK, parse_math=False)
    mark_dates(below, one.times[-1] - one.past_times[0])
    for axes in (above, below):
        axes.grid(color=GRID, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=FAINT, labelsize=8)
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1)}  # outside the axes, where it hides no curve
        axes.legend(**beside, framealpha=0.9, edgecolor="none", fontsize=8, labelcolor=INK)
    return figure
