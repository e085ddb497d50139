"""Pictures side by side: attended by each word, drawn for captions, true beside drawn."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.figures.axes import blank, printable
from weft.figures.colours import FAINT, GRID, INK

COLUMNS = 6
SHEET_COLUMNS = 8
SHOWN = 10
DARKEST = 0.75
"""Shade of places without attention; below 1 to keep the picture visible."""


def lit(picture: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Darken a picture [height, width, 3] where weights [rows, columns] are below their maximum."""
    light = weights / max(float(weights.max()), 1e-12)
    tall, wide = picture.shape[:2]
    rows = np.arange(tall) * weights.shape[0] // tall
    columns = np.arange(wide) * weights.shape[1] // wide
    shade = 1 - DARKEST * (1 - light[rows][:, columns])
    return (picture * shade[..., None]).astype(np.uint8)


def lit_pictures(
    picture: np.ndarray, looks: Sequence[tuple[str, np.ndarray]], *, wide: bool = False
) -> Figure:
    """The picture [height, width, 3], then a copy per look that is light where its weights are."""
    count = 1 + len(looks)
    columns = 1 if wide else min(COLUMNS, count)
    rows = -(-count // columns)
    size = (8.0, 1.7 * rows) if wide else (1.7 * columns, 1.95 * rows + 0.4)
    figure = blank(*size)
    places = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for place in places:
        place.set_axis_off()
    places[0].imshow(picture, interpolation="nearest")
    places[0].set_title("the picture", fontsize=9, color=INK)
    for place, (name, weights) in zip(places[1:], looks, strict=False):
        place.imshow(lit(picture, weights), interpolation="nearest")
        title = f"{printable(name.removeprefix('▁'))}  {weights.max():.2f}"
        place.set_title(title, fontsize=9, color=INK, parse_math=False)
    return figure


def attended_picture(picture: np.ndarray, words: Sequence[str], weights: np.ndarray, title: str) -> Figure:
    """The picture, then a copy per word that is light where its weights [T, rows, columns] are."""
    if picture.dtype != np.uint8:  # features: only the attention is shown
        picture = np.full(
            (*weights.shape[1:3], 3) if weights.ndim > 2 else (1, *weights.shape[1:], 3), 255, np.uint8
        )
    figure = lit_pictures(
        picture, [(word, np.atleast_2d(weight)) for word, weight in zip(words, weights, strict=False)]
    )
    figure.suptitle(title, fontsize=11, color=INK, parse_math=False)
    return figure


def picture_sheet(drawn: Sequence[tuple[str, np.ndarray]]) -> Figure:
    """Pictures in rows, each below its caption."""
    columns = min(SHEET_COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = blank(1.5 * columns, 1.85 * rows)
    places = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for place in places:
        place.set(xticks=[], yticks=[])
        place.spines[:].set_visible(False)
    for place, (text, picture) in zip(places, drawn, strict=False):
        place.imshow(picture, interpolation="nearest")
        place.spines[:].set_visible(True)
        place.spines[:].set_color(GRID)
        shown = "\n".join(textwrap.wrap(text, 20)[:3])
        place.set_title(shown, fontsize=7, color=INK, parse_math=False)
    return figure


def true_and_drawn(truth: np.ndarray, drawn: np.ndarray, texts: Sequence[str], title: str) -> Figure:
    """A column for each of some captions: the true picture above, the drawn one below; uint8."""
    count = min(SHOWN, len(texts))
    chosen = np.linspace(0, len(texts) - 1, count).round().astype(int)
    figure = blank(1.2 + 1.15 * count, 3.6, dpi=110)
    rows = figure.subplots(2, count, squeeze=False)
    for place, number in enumerate(chosen):
        for axes, pictures in zip(rows[:, place], (truth, drawn), strict=True):
            axes.imshow(pictures[number], interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color(FAINT)
        words = "\n".join(textwrap.wrap(printable(texts[number]), 16)[:4])
        rows[0, place].set_title(words, fontsize=7, color=INK, parse_math=False)
    rows[0, 0].set_ylabel("true", color=INK)
    rows[1, 0].set_ylabel("drawn", color=INK)
    figure.suptitle(printable(title), fontsize=10, color=INK, parse_math=False)
    return figure
