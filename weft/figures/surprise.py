"""The surprise of a language model: losses by frequency of tokens. Read next: coloured.py, by token."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.figures.axes import bar_axes, blank, legend
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.letters import printable
from weft.figures.records import Bucket


def nats_by_frequency(buckets: Sequence[Bucket], *, title: str, note: str) -> Figure:
    """The loss per token as bars, for unseen, rare and frequent tokens."""
    names = list(buckets[0].nats) if buckets else []
    figure = blank(7.6, 4.2, layout=None)
    axes = figure.add_axes((0.1, 0.24, 0.88, 0.64))
    wide = 0.8 / max(1, len(names))
    for number, name in enumerate(names):
        middle = np.arange(len(buckets)) - 0.4 + wide * (number + 0.5)
        heights = [bucket.nats[name] for bucket in buckets]
        axes.bar(middle, heights, wide * 0.92, color=BARS[number % len(BARS)], label=name, linewidth=0)
        for x, y in zip(middle.tolist(), heights, strict=True):
            axes.text(x, y, f"{y:.2f}", fontsize=7.5, color=INK, ha="center", va="bottom")
    ticks = [f"seen {bucket.least:,}+\nn = {bucket.tokens:,}" for bucket in buckets]
    axes.set_xticks(range(len(buckets)), ticks, fontsize=8)
    axes.set_ylabel("nats per token", color=INK)
    bar_axes(axes)
    axes.set_title(printable(title), fontsize=12, color=INK, pad=10, parse_math=False)
    if names:
        legend(axes, fontsize=7.5, loc="upper right")
    figure.text(0.1, 0.0, note, fontsize=6.5, color=FAINT, va="bottom", parse_math=False)
    return figure
