"""A recording: its spectrogram, and where its transcript listened."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weft.figures.colours import GRID, INK, weight_colours
from weft.figures.records import Heard


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
