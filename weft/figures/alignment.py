"""Heat maps: attention weights, with the source on top and the target on the left, and confusion matrices.

    figure = heat_map(weights, source, target, title="Wo ist der Hund? / Where is the dog?")
    save(figure, "where.svg")

Read next: records.py, words instead of pieces; fonts.py, characters of any script.
"""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.text import Text

from weft.errors import ShapeError
from weft.figures.axes import printable
from weft.figures.colours import FAINT, GRID, INK, ink_on, weight_colours
from weft.figures.fonts import readable

VALUES_UP_TO = 30
GRID_UP_TO = 60
LONGEST_LABEL = 40
_VECTOR_CELLS = 1600  # with more cells an SVG holds one image, to keep the file small
_GAP = 0.08  # inches between labels and cells


class _Sizes(NamedTuple):
    cell: float  # inches
    points: float  # of the labels
    every: int  # every n-th label is drawn


def heat_map(
    weights: np.ndarray, source: Sequence[str], target: Sequence[str], *, title: str, top: float = 1.0
) -> Figure:
    """Draw attention weights [T, S] of at least 0; up to 30 x 30, cells also show their values."""
    _check(weights, source, target, top)
    count = max(weights.shape)
    sizes = _sizes(count)
    figure = Figure(facecolor="white", dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, len(source)), ylim=(len(target), 0), xticks=[], yticks=[])
    axes.spines[:].set_color(GRID)
    scale = Normalize(0, top)
    colours = ScalarMappable(scale, weight_colours())
    axes.pcolormesh(weights, norm=scale, cmap=colours.cmap, rasterized=weights.size > _VECTOR_CELLS)
    if count <= GRID_UP_TO:
        _grid(axes, *weights.shape)
    if count <= VALUES_UP_TO:
        _values(axes, weights, colours)
    labels = _labels(axes, source, target, sizes)
    labels += _sides(axes, sizes.cell)
    _arrange(figure, axes, labels, colours, sizes.cell, title)
    return figure


def _check(weights: np.ndarray, source: Sequence[str], target: Sequence[str], top: float) -> None:
    if weights.shape != (len(target), len(source)) or weights.size == 0:
        raise ShapeError(
            f"heat map: expected weights of shape [{len(target)}, {len(source)}] (target, source pieces), "
            f"at least one of each, got {list(weights.shape)}"
        )
    if not np.isfinite(weights).all() or weights.min() < 0 or not top > 0:
        raise ShapeError(
            "heat map: expected finite weights that are not negative and a top above 0, "
            f"got weights from {weights.min()} to {weights.max()} with top {top}"
        )


def _sizes(count: int) -> _Sizes:
    if count <= VALUES_UP_TO:
        return _Sizes(0.38, 11.0, 1)
    if count <= GRID_UP_TO:
        return _Sizes(0.24, 9.5, 1)
    cell = min(0.13, 40 / count)
    return _Sizes(cell, 6.0, max(1, round(0.11 / cell)))


def _grid(axes: Axes, rows: int, columns: int) -> None:
    lines = [[(column, 0), (column, rows)] for column in range(columns + 1)]
    lines += [[(0, row), (columns, row)] for row in range(rows + 1)]
    axes.add_collection(LineCollection(lines, colors=GRID, linewidths=0.7), autolim=False)


def _values(axes: Axes, weights: np.ndarray, colours: ScalarMappable) -> None:
    for row, column in zip(*np.nonzero(weights >= 0.005), strict=True):
        weight = weights[row, column]
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{weight:.2f}".removeprefix("0") if weight < 0.995 else f"{weight:.1f}",
            ha="center",
            va="center_baseline",
            fontsize=8,
            color=ink_on(colours.to_rgba(weight)),
        )


def _labels(axes: Axes, source: Sequence[str], target: Sequence[str], sizes: _Sizes) -> list[Text]:
    gap = _GAP / sizes.cell
    style: dict[str, Any] = {
        "fontsize": sizes.points,
        "color": INK,
        "parse_math": False,
        "rotation_mode": "anchor",
    }
    slanted = len(source) <= VALUES_UP_TO and len(target) <= VALUES_UP_TO
    turn: dict[str, Any] = {"rotation": 50, "va": "baseline"} if slanted else {"rotation": 90, "va": "center"}
    labels = [
        axes.text(column + 0.5, -gap, _label(piece), ha="left", **turn, **style)
        for column, piece in enumerate(source)
        if column % sizes.every == 0
    ]
    labels += [
        axes.text(-gap, row + 0.5, _label(piece), ha="right", va="center_baseline", **style)
        for row, piece in enumerate(target)
        if row % sizes.every == 0
    ]
    return labels


def _sides(axes: Axes, cell: float) -> list[Text]:
    """The names of the two axes, in the corner between the labels."""
    gap = _GAP / cell
    style: dict[str, Any] = {"fontsize": 8, "color": FAINT, "ha": "right", "clip_on": False}
    return [
        axes.text(-gap, -3.2 * gap, "read \N{RIGHTWARDS ARROW}", va="bottom", **style),
        axes.text(-gap, -gap, "written \N{DOWNWARDS ARROW}", va="bottom", **style),
    ]


def _label(piece: str) -> str:
    shown = printable(piece)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def _arrange(
    figure: Figure, axes: Axes, labels: list[Text], colours: ScalarMappable, cell: float, title: str
) -> None:
    """Fit the figure around cells of fixed size: measure the labels, then place the title above them."""
    columns, rows = axes.get_xlim()[1], axes.get_ylim()[0]
    width, height = columns * cell, rows * cell
    figure.set_size_inches(width, height)
    with readable(figure, keep_text=False, warn=False):
        renderer = FigureCanvasAgg(figure).get_renderer()
        boxes = [label.get_window_extent(renderer) for label in labels]
    left = max(0.0, -min(box.x0 for box in boxes) / figure.dpi)
    above = max(box.y1 for box in boxes) / figure.dpi - height
    right = max(0.0, max(box.x1 for box in boxes) / figure.dpi - width)
    right = max(right, 0.7)

    wide = max(left + width + right, 3.2)
    points = 13.0 if wide < 10 else 18.0
    lines = _wrapped(title, wide, points)
    title_height = len(lines) * points * 1.35 / 72 + 0.12
    tall = height + above + title_height
    start = (wide - left - width - right) / 2 + left
    figure.set_size_inches(wide, tall)
    axes.set_position((start / wide, 0, width / wide, height / tall))
    figure.text(
        0.5,
        1,
        "\n".join(lines),
        ha="center",
        va="top",
        fontsize=points,
        color=INK,
        parse_math=False,
        linespacing=1.25,
    )
    length = min(max(height, 1.2), 4.6)  # may extend below a few cells; saving includes it
    place = ((start + width + 0.15) / wide, (height - length) / tall, 0.13 / wide, length / tall)
    _colour_bar(figure, colours, place)


def _colour_bar(figure: Figure, colours: ScalarMappable, place: tuple[float, float, float, float]) -> None:
    axes = figure.add_axes(place)
    bar = figure.colorbar(colours, cax=axes, ticks=np.linspace(0, colours.norm.vmax or 1, 3))
    bar.outline.set_edgecolor(GRID)
    axes.tick_params(labelsize=8, colors=FAINT, length=2)


def _wrapped(title: str, inches: float, points: float) -> list[str]:
    """Wrap to lines of similar width, at most `inches`; a character is about 0.58 of its size wide."""
    room = int(inches * 72 / (0.58 * points))
    lines = []
    for paragraph in title.split("\n"):
        text = printable(paragraph)
        count = len(textwrap.wrap(text, room, break_on_hyphens=False))
        even = next(
            width
            for width in range(max(1, len(text) // max(1, count)), room + len(text) + 1)
            if len(textwrap.wrap(text, width, break_on_hyphens=False)) <= count
        )
        lines += textwrap.wrap(text, even, break_on_hyphens=False)
    return lines


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
