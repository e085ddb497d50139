"""The attention of a captioner, drawn over the picture once for each word."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weft.figures.colours import INK

if TYPE_CHECKING:
    from weft.tasks.caption.predictor import Caption, Captioner

COLUMNS = 6
DARKEST = 0.75
"""Opacity of the shade over places without attention; below 1 to keep the picture visible."""


def draw(captioner: "Captioner", picture: np.ndarray, caption: "Caption") -> Figure:
    """The picture, followed by one copy per word that is light where the word attended."""
    weights = captioner.look(picture, caption.tokens) if caption.tokens else np.zeros((0, 1, 1))
    words = captioner.vocabulary.pieces(caption.tokens)
    if picture.dtype != np.uint8:  # features: only the attention is shown
        picture = np.full(
            (*weights.shape[1:3], 3) if weights.ndim > 2 else (1, *weights.shape[1:], 3), 255, np.uint8
        )
    count = 1 + len(words)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(1.7 * columns, 1.95 * rows + 0.4), facecolor="white", layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for place in axes:
        place.set_axis_off()
    axes[0].imshow(picture, interpolation="nearest")
    axes[0].set_title("the picture", fontsize=9, color=INK)
    for place, word, weight in zip(axes[1:], words, weights, strict=False):
        grid = weight if weight.ndim == 2 else np.atleast_2d(weight)
        light = grid / max(float(grid.max()), 1e-12)
        tall, wide = picture.shape[:2]
        rows_of = np.arange(tall) * grid.shape[0] // tall
        columns_of = np.arange(wide) * grid.shape[1] // wide
        shade = 1 - DARKEST * (1 - light[rows_of][:, columns_of])
        place.imshow((picture * shade[..., None]).astype(np.uint8), interpolation="nearest")
        place.set_title(
            f"{word.removeprefix('▁')}  {grid.max():.2f}", fontsize=9, color=INK, parse_math=False
        )
    figure.suptitle(caption.text, fontsize=11, color=INK, parse_math=False)
    return figure
