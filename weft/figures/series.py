"""Figures of forecasts after their past, with bands of quantiles, and of recordings with their transcript."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator
from matplotlib.figure import Figure

from weft.figures.axes import blank, legend, plain_axes
from weft.figures.colours import BARS, FAINT, GRID, INK, weight_colours
from weft.figures.records import ForecastRecord, Heard

DAYS = np.timedelta64(3, "D")
"""Figures of longer spans have ticks at days instead of hours."""

BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
"""Of a legend outside the axes, where it hides no curve."""


DRAWN = 4
"""Number of series in a figure at most."""


def forecast_figure(*found: ForecastRecord) -> Figure:
    """The first series below each other."""
    drawn = found[:DRAWN]
    figure = blank(8, 3.4 * len(drawn), dpi=120)
    for axes, one in zip(figure.subplots(len(drawn), squeeze=False)[:, 0], drawn, strict=True):
        axes.set_title(one.name, color=INK, fontsize=11, parse_math=False)
        _draw(axes, one)
    if len(found) > DRAWN:
        axes.set_xlabel(f"the first {DRAWN} of {len(found):,} series", color=INK)
    return figure


def _draw(axes: Axes, one: ForecastRecord) -> None:
    """The past in black, what follows from its last value on; bands are darker towards the middle."""
    axes.plot(one.past_times, one.past, color=INK, linewidth=1.2, label="measured")
    ahead = np.concatenate([one.past_times[-1:], one.times])

    def joined(values: np.ndarray) -> np.ndarray:
        return np.concatenate([one.past[-1:], values])

    if one.quantiles is not None:
        levels = one.levels
        for outer in range(len(levels) // 2):
            low, high = (joined(one.quantiles[:, place]) for place in (outer, -1 - outer))
            share = levels[-1 - outer] - levels[outer]
            name = f"{100 * share:.0f} % band"
            axes.fill_between(ahead, low, high, color=BARS[0], alpha=0.2, linewidth=0, label=name)
    axes.plot(ahead, joined(one.best), color=BARS[0], linewidth=1.8, label="forecast")
    if one.actual is not None:
        axes.plot(ahead, joined(one.actual), color=INK, linewidth=1, linestyle=":", label="actual")
    axes.axvline(one.past_times[-1], color=FAINT, linewidth=0.8, linestyle=":")
    plain_axes(axes)
    legend(axes, **BESIDE)
    span = one.times[-1] - one.past_times[0]
    if isinstance(span, np.timedelta64) and span > DAYS:
        # Ticks at every second day of a month would make the labels of the 31st and the 1st overlap.
        axes.xaxis.set_major_locator(AutoDateLocator(interval_multiples=False))


def errors_figure(by_step: Mapping[str, np.ndarray], one: ForecastRecord, *, title: str) -> Figure:
    """Squared errors [H] by steps ahead above, the model's and those of baselines; one window below."""
    (name, errors), *others = by_step.items()
    figure = blank(9, 6.4, dpi=120)
    above, below = figure.subplots(2, 1)
    steps = np.arange(1, len(errors) + 1)
    above.plot(steps, errors, color=BARS[0], linewidth=2, label=name)
    for number, (baseline, errors) in enumerate(others):
        style = ("-", "--", ":")[number % 3]
        above.plot(steps, errors, style, color=INK, linewidth=1, label=baseline)
    above.set_xlabel("steps ahead", color=INK)
    above.set_ylabel("mean squared error (scaled)", color=INK)
    above.set_ylim(bottom=0)
    above.set_title(title, color=INK, fontsize=10, parse_math=False)
    plain_axes(above)
    legend(above, **BESIDE)
    _draw(below, one)
    below.set_xlabel(f"one window of {one.name}", color=INK, parse_math=False)
    return figure


def spectrogram(axes: Axes, heard: Heard) -> None:
    """Draw the bands of a recording over time, darker where it is louder."""
    seconds, bands = len(heard.frames) * heard.hop, heard.frames.shape[1]
    loud = heard.frames.T - heard.frames.min()
    extent = (0, seconds, 0, bands)
    drawn = axes.imshow(loud, origin="lower", aspect="auto", extent=extent, cmap=weight_colours())
    axes.figure.colorbar(drawn, ax=axes, pad=0.01).ax.tick_params(labelsize=7)
    axes.set(ylabel="mel bands")


def heard_figure(heard: Heard, *, title: str) -> Figure:
    """The spectrogram with every piece at the middle of where it listened; below, its attention over time."""
    seconds = len(heard.frames) * heard.hop
    count = len(heard.pieces)
    figure = Figure(figsize=(min(16, max(6, 2.2 * seconds)), 3 + 0.16 * count), facecolor="white")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, max(1.0, 0.16 * count)])
    bands = heard.frames.shape[1]
    spectrogram(above, heard)
    width = heard.weights.shape[1] * heard.stride * heard.hop
    middle = (np.arange(heard.weights.shape[1]) + 0.5) * heard.stride * heard.hop
    for place, piece in enumerate(heard.pieces[:-1]):
        at = float(heard.weights[place] @ middle / max(heard.weights[place].sum(), 1e-9))
        above.axvline(at, color=GRID, linewidth=0.5)
        above.text(at, bands * 1.02, piece, ha="center", va="bottom", color=INK, fontsize=8, parse_math=False)
    top = max(float(heard.weights.max(initial=0.0)), 1e-6)
    drawn = below.imshow(
        heard.weights, aspect="auto", extent=(0, width, count, 0), cmap=weight_colours(), vmin=0, vmax=top
    )
    figure.colorbar(drawn, ax=below, pad=0.01).ax.tick_params(labelsize=7)
    below.set_yticks(np.arange(count) + 0.5, heard.pieces, fontsize=7, parse_math=False)
    below.set(xlim=(0, seconds), xlabel="seconds")
    figure.suptitle(title, color=INK, fontsize=10, parse_math=False)
    figure.tight_layout()
    return figure
