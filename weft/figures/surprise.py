"""The surprise of a language model: text coloured by probability, and losses by frequency of tokens."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.figures.axes import bar_axes, blank, legend
from weft.figures.colours import BARS, FAINT, INK, weight_colours
from weft.figures.letters import printable
from weft.figures.records import Bucket
from weft.wording import plural

WIDE = 72  # characters of a line of coloured text
MOST = 40  # lines of it
DARK = 0.55  # from here on letters are white


def coloured_tokens(pieces: Sequence[str], logp: Sequence[float], *, title: str) -> Figure:
    """Tokens with their probabilities, from log-probabilities in nats; the likelier, the darker."""
    lines = _lines(pieces, logp)
    height = 0.34 * len(lines) + 0.9
    figure = blank(9.2, height, layout=None)
    axes = figure.add_axes((0.02, 0.0, 0.96, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, WIDE)
    axes.set_ylim(height / 0.34, 0)
    colours = weight_colours()
    axes.text(0, 0.8, printable(title), fontsize=11, color=INK, parse_math=False)
    for number, line in enumerate(lines):
        place = 0.0
        for piece, one in line:
            prob = math.exp(one)
            wide = max(1, len(piece))
            axes.barh(number + 1.9, wide, 0.86, left=place, color=colours(prob), linewidth=0)
            axes.text(
                place + wide / 2,
                number + 1.9,
                printable(piece),
                fontsize=9,
                family="monospace",
                ha="center",
                va="center",
                color="white" if prob > DARK else INK,
                parse_math=False,
            )
            place += wide
    mean = -sum(logp) / len(logp)
    note = f"{mean:.3f} nats per token, {plural(len(logp), 'token')}; white 0, dark 1"
    axes.text(0, len(lines) + 2.4, note, fontsize=8, color=FAINT, va="top", parse_math=False)
    return figure


def _lines(pieces: Sequence[str], logp: Sequence[float]) -> list[list[tuple[str, float]]]:
    lines: list[list[tuple[str, float]]] = [[]]
    place = 0
    for piece, one in zip(pieces, logp, strict=True):
        if place + len(piece) > WIDE and lines[-1]:
            lines.append([])
            place = 0
        lines[-1].append((piece[:WIDE], one))
        place += len(piece)
    if len(lines) > MOST:
        lines = [*lines[:MOST], [("...", 0.0)]]
    return lines


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
