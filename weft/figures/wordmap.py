"""A map of words: their vectors projected on the first two principal components."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.figures.colours import BARS, FAINT, GRID, INK


def principal(vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """[N, 2] the first two principal components of unit vectors, and their share of the variance.

    The largest entry of each direction is made positive, so the map is reproducible.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    x = vectors / np.where(length > 0, length, 1)
    x = x - x.mean(0)
    left, values, right = np.linalg.svd(x, full_matrices=False)
    sign = np.sign(right[np.arange(len(right)), np.abs(right).argmax(1)])
    places = (left * values * sign)[:, :2]
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
    total = float((values**2).sum())
    return places, float((values[:2] ** 2).sum()) / total if total else 0.0


def word_map(words: Sequence[str], vectors: np.ndarray, *, title: str, marked: int = 0) -> Figure:
    """Draw words at their positions.

    Args:
        words: [N].
        vectors: [N, D].
        title: above the map.
        marked: number of words at the beginning to highlight.
    """
    places, share = principal(vectors)
    side = 5 + min(4, len(words) / 20)
    figure = Figure(figsize=(side, side), dpi=120, facecolor="white", layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, color=INK, fontsize=10, parse_math=False)
    colours = [BARS[1] if number < marked else BARS[0] for number in range(len(words))]
    axes.scatter(places[:, 0], places[:, 1], s=9, color=colours)
    for number, (word, place) in enumerate(zip(words, places, strict=True)):
        axes.annotate(
            word,
            place,
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            fontweight="bold" if number < marked else "normal",
            parse_math=False,
        )
    axes.set_xlabel(f"principal components of unit vectors, {100 * share:.0f} % of their variance", color=INK)
    axes.grid(color=GRID, linewidth=0.6)
    axes.margins(0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=FAINT, labelsize=7)
    return figure
