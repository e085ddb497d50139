"""A confusion matrix as a heat map: true class by predicted class.

Read next: ../metrics/f1.py, which counts; colours.py.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from weft.errors import ShapeError
from weft.figures.colours import FAINT, INK, ink_on, weight_colours
from weft.figures.letters import printable

MOST = 40
"""Maximum number of classes drawn, the most frequent ones; up to 20, cells also show counts."""


def confusion_map(matrix: np.ndarray, labels: Sequence[str], *, title: str) -> Figure:
    """Counts [C, C], reference by prediction; colours show each row's shares."""
    if matrix.shape != (len(labels), len(labels)) or not len(labels):
        raise ShapeError(
            f"confusion: expected a matrix of shape [{len(labels)}, {len(labels)}], at least one class, "
            f"got {list(matrix.shape)}"
        )
    left_out = len(labels) - MOST
    matrix, labels = matrix[:MOST, :MOST], list(labels)[:MOST]
    count = len(labels)
    cell = 0.5 if count <= 20 else 0.26
    size = 1.2 + cell * count
    figure = Figure(figsize=(size + 0.8, size), facecolor="white", dpi=100)
    axes = figure.add_axes((0.2, 0.1, 0.72, 0.72))
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    scale, map_ = Normalize(0, 1), weight_colours()
    drawn = axes.imshow(shares, norm=scale, cmap=map_, aspect="equal")
    bar = figure.colorbar(drawn, ax=axes, pad=0.03, shrink=0.8, ticks=[0, 0.5, 1])
    bar.set_label("share of the class", color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)
    names = [printable(label) for label in labels]
    points = 9 if count <= 20 else 6
    axes.set_xticks(range(count), names, rotation=90, fontsize=points, parse_math=False)
    axes.set_yticks(range(count), names, fontsize=points, parse_math=False)
    axes.tick_params(length=0, colors=INK, top=True, bottom=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_color(FAINT)
    if count <= 20:
        colours = ScalarMappable(scale, map_)
        for row, column in zip(*np.nonzero(matrix), strict=True):
            colour = ink_on(colours.to_rgba(shares[row, column]))
            text = f"{int(matrix[row, column]):,}"
            axes.text(column, row, text, ha="center", va="center_baseline", fontsize=8, color=colour)
    axes.set_ylabel("true class", color=INK)
    axes.set_xlabel("predicted class", color=INK)
    more = f"\n({left_out} rarer classes are not shown)" if left_out > 0 else ""
    shown = "\n".join(map(printable, title.split("\n")))
    axes.set_title(shown + more, fontsize=11, color=INK, pad=12, parse_math=False)
    return figure
