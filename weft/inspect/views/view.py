"""The contract of a view: one aspect of a run, as blocks of a page, a table, JSON and a picture.

To add a view, add one file to this folder. The page draws its blocks with one renderer per kind of block
(../page/*.js): matrices, lines, tree, choices, points, plane, table, text. Read next: attention.py, the best
known view; ../page/html.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from weft.figures.axes import blank, legend, plain_axes, printable
from weft.figures.colours import BARS, GRID, INK, signed_colours, weight_colours
from weft.figures.records import Axes, Figure
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

Block = dict[str, Any]  # data for one renderer: `kind` names it, numbers are arrays
Matrix = dict[str, Any]

SLANTED: dict[str, Any] = {"rotation": 60, "rotation_mode": "anchor", "ha": "right", "parse_math": False}
"""Of labels below an axis that are words."""


class View(ABC):
    """One aspect of a run."""

    title: ClassVar[str]
    order: ClassVar[int]

    @classmethod
    @abstractmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "View | None":
        """Make the view of an input; None if it does not apply to the run."""

    @abstractmethod
    def blocks(self) -> list[Block]:
        """The blocks on the page, from top to bottom."""

    def page(self) -> list[Block]:
        """The same, perhaps with fewer values, as the page has room for."""
        return self.blocks()

    @abstractmethod
    def table(self) -> Iterable[Sequence[object]]:
        """All values as rows, the column names first."""

    @abstractmethod
    def figure(self) -> "Figure":
        """One picture for a slide."""

    def json(self) -> Any:
        """The blocks with all values, arrays as lists."""
        return plain(self.blocks())


class ChartsView(View):
    """Charts, one above the other."""

    def __init__(self, charts: Sequence[Block]) -> None:
        self.charts = charts

    def blocks(self) -> list[Block]:
        return list(self.charts)

    def table(self) -> Iterable[Sequence[object]]:
        yield "chart", "series", "x", "y"
        for block in self.charts:
            for one in block["series"]:
                for x, y in zip(one["x"].tolist(), one["y"].tolist(), strict=True):
                    yield block["title"], one["name"], x, y

    def figure(self) -> "Figure":
        """The charts, more than four in two columns."""
        return picture_of_lines(self.charts)


def plain(value: Any) -> Any:
    """Convert arrays to lists and non-finite values to None."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def matrix(
    name: str,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    low: float = 0.0,
    high: float = 1.0,
    note: str = "",
) -> Matrix:
    """One matrix of a block; colours range from `low` to `high`, diverging if low < 0."""
    return {
        "name": name,
        "values": np.asarray(values, dtype=np.float32),
        "rows": list(rows),
        "columns": list(columns),
        "low": low,
        "high": high,
        "note": note,
    }


def series(name: str, x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, **how: Any) -> Block:
    """One line of a chart; how: dashed, faint, colour (an index of BARS, -1 for ink)."""
    return {"name": name, "x": np.asarray(x, float), "y": np.asarray(y, float), **how}


def chart(
    title: str,
    x: str,
    y: str,
    lines: Sequence[Block],
    *,
    log: bool = False,
    labels: Sequence[str] = (),
    top: float | None = None,
    dates: bool = False,
    bands: Sequence[Block] = (),
) -> Block:
    """A block of lines; `labels` name the integers of x, and values above `top` are cut off.

    With `dates`, x is in seconds since 1970 and is shown as dates. Bands have name, x, low, high and colour.
    """
    return {
        "kind": "lines",
        "title": title,
        "x": x,
        "y": y,
        "log": log,
        "labels": list(labels),
        "series": list(lines),
        "top": top,
        "dates": dates,
        "bands": list(bands),
    }


def said(words: str) -> Block:
    """A paragraph of text."""
    return {"kind": "text", "text": words}


def capital(sentence: str) -> str:
    """A sentence with a capital letter at its start."""
    return sentence[:1].upper() + sentence[1:]


def draw_lines(axes: "Axes", block: Block) -> None:
    """Draw a block of lines on axes."""
    for band in block["bands"]:
        colour = BARS[band["colour"]]
        axes.fill_between(
            band["x"],
            band["low"],
            band["high"],
            color=colour,
            alpha=0.2,
            linewidth=0,
            label=printable(band["name"]),
        )
    for number, one in enumerate(block["series"]):
        place = one.get("colour", number)
        style = "--" if one.get("dashed") else ":" if number >= len(BARS) else "-"
        axes.plot(
            one["x"],
            one["y"],
            style,
            color=INK if place < 0 else BARS[place % len(BARS)],
            linewidth=1.6,
            label=printable(one["name"]),
            alpha=0.65 if one.get("faint") else 1,
            marker="o" if len(one["x"]) == 1 else None,
        )
    if block["log"]:
        axes.set_yscale("log")
    if block["top"] is not None and axes.get_ylim()[1] > block["top"]:
        axes.set_ylim(top=block["top"])
    if block["labels"]:
        names = block["labels"]
        every = max(1, len(names) // 40)
        places = range(0, len(names), every)
        axes.set_xticks(list(places), [printable(names[n])[:16] for n in places], **SLANTED)
    axes.set_title(printable(block["title"]), fontsize=11, color=INK, parse_math=False)
    axes.set_xlabel(block["x"], color=INK)
    axes.set_ylabel(block["y"], color=INK)
    plain_axes(axes)
    if 0 < len(block["series"]) <= 12:
        legend(axes)


def draw_matrix(axes: "Axes", one: Matrix) -> None:
    """Draw one matrix on axes, without labels of its rows and columns."""
    colours = signed_colours() if one["low"] < 0 else weight_colours()
    drawn = axes.imshow(one["values"], aspect="auto", cmap=colours, vmin=one["low"], vmax=one["high"])
    axes.set(xticks=[], yticks=[], title=printable(one["name"]))
    axes.spines[:].set_color(GRID)
    axes.figure.colorbar(drawn, ax=axes, pad=0.01).ax.tick_params(labelsize=7)


def picture_of_lines(blocks: Sequence[Block]) -> "Figure":
    """Charts one above the other; more than four in two columns."""
    count = len(blocks)
    columns = 1 if count <= 4 else 2
    rows = -(-count // columns)
    figure = blank(8.4 * columns, 3.4 * rows)
    for number, block in enumerate(blocks):
        draw_lines(figure.add_subplot(rows, columns, number + 1), block)
    return figure
