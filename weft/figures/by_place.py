"""A score by place: how it depends on distance or on the neighbours of a word. Read next: picture.py."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from weft.figures.axes import blank, legend, plain_axes
from weft.figures.colours import BARS, INK
from weft.figures.letters import printable

BINS = 12
"""Maximum points of a line; with more places, neighbouring ones are grouped."""


class PlaceMean(NamedTuple):
    """The mean of the values at a place or group of places, with its 95 % interval."""

    place: float
    mean: float
    low: float
    high: float


def points(places: np.ndarray, values: np.ndarray) -> list[PlaceMean]:
    """Means by place; grouped places have similar numbers of values.

    Args:
        places, values: [N], one of each per item.

    Example:
        >>> [(one.place, one.mean) for one in points(np.array([1, 1, 2]), np.array([0.0, 1.0, 3.0]))]
        [(1.0, 0.5), (2.0, 3.0)]
    """
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    known = np.unique(places)
    if len(known) > BINS:
        cuts = np.unique(np.quantile(places, np.arange(1, BINS) / BINS))
        group = np.searchsorted(cuts, places, side="left")
    else:
        group = np.searchsorted(known, places)
    found = []
    for number in np.unique(group):
        members = values[group == number]
        half = 1.96 * float(members.std(ddof=1)) / np.sqrt(len(members)) if len(members) > 1 else 0.0
        mean = float(members.mean())
        middle = float(places[group == number].mean())
        found.append(PlaceMean(middle, mean, mean - half, mean + half))
    return found


def by_place(
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    x: str,
    y: str,
    title: str,
    baselines: Mapping[str, float],
) -> Figure:
    """Places [N] and values [N] as lines with 95 % bands, and the baselines as horizontal lines."""
    figure = blank(7.6, 4.2)
    axes = figure.subplots()
    for number, (name, (places, values)) in enumerate(lines.items()):
        drawn, colour = points(places, values), BARS[number % len(BARS)]
        at = [one.place for one in drawn]
        low, high = [one.low for one in drawn], [one.high for one in drawn]
        axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, [one.mean for one in drawn], color=colour, marker="o", markersize=3.5, label=name)
    for number, (name, value) in enumerate(baselines.items()):
        style = ("--", ":", "-.")[number % 3]
        axes.axhline(value, color=INK, linewidth=1, linestyle=style, label=f"baseline: {name}")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.1)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    plain_axes(axes)
    axes.set_title(printable(title), fontsize=11, color=INK, parse_math=False)
    legend(axes, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
