"""A forecast after its past, with bands where the model says how sure it is."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator
from matplotlib.figure import Figure

from weft.figures.alignment import save
from weft.figures.answers import Look
from weft.figures.colours import BARS, FAINT, GRID, INK
from weft.tasks.forecast import predictor

DAYS = np.timedelta64(3, "D")  # of a picture from which its marks are days and not hours


class ForecastLook(Look):
    """One picture a series, in a file with its name."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._written: set[Path] = set()

    def see(self, look: Any) -> None:
        """Draw a forecast; rows of a table but the last of each series carry nothing to draw."""
        if look is None or self.plot is None or self.drawn >= self.limit:
            return
        self.drawn += 1
        name = file_name(look.name) or str(self.drawn)
        if (self.plot / f"{name}.png") in self._written:
            name = f"{name}-{self.drawn}"
        for suffix in ("png", "svg"):
            save(draw(look), self.plot / f"{name}.{suffix}")
            self._written.add(self.plot / f"{name}.{suffix}")


def file_name(series: str) -> str:
    """The name of a series as that of a file: letters, digits, points and dashes.

    Example:
        >>> file_name("shop 7/Zagreb")
        'shop-7-Zagreb'
    """
    return re.sub(r"[^\w.]+", "-", series).strip("-.")[:80]


def draw(look: predictor.Look) -> Figure:
    """The past in ink, the forecast in colour, from the outer quantiles inwards ever darker."""
    figure = Figure(figsize=(8, 3.4), dpi=120, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.plot(look.past_times, look.past, color=INK, linewidth=1.2, label="measured")
    if look.quantiles is not None:
        levels = look.levels
        for outer in range(len(levels) // 2):
            low, high = look.quantiles[:, outer], look.quantiles[:, -1 - outer]
            share = levels[-1 - outer] - levels[outer]
            axes.fill_between(
                look.times,
                low,
                high,
                color=BARS[0],
                alpha=0.2,
                linewidth=0,
                label=f"{100 * share:.0f} % band",
            )
    axes.plot(look.times, look.best, color=BARS[0], linewidth=1.8, label="forecast")
    if look.came is not None:
        axes.plot(look.times, look.came, color=INK, linewidth=1, linestyle=":", label="actual")
    axes.axvline(look.past_times[-1], color=FAINT, linewidth=0.8, linestyle=":")
    axes.set_title(look.name, color=INK, fontsize=11, parse_math=False)
    axes.grid(color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=FAINT, labelsize=8)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="upper left")
    mark_dates(axes, look.times[-1] - look.past_times[0])
    return figure


def mark_dates(axes: Axes, span: Any) -> None:
    """Marks of days that stand equally apart, where an axis of time is that long."""
    if isinstance(span, np.timedelta64) and span > DAYS:
        # Every second day of a month would put the 31st beside the 1st, one name over the other.
        axes.xaxis.set_major_locator(AutoDateLocator(interval_multiples=False))
