"""A map of words: their vectors projected on the first two principal components."""

from collections.abc import Sequence

import numpy as np

from weft.figures.axes import blank, name_point, plain_axes
from weft.figures.colours import BARS, INK
from weft.figures.records import Figure


def plane(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Project points [N, D] on their two principal axes [N, 2]; also returns the share of variance.

    Signs are chosen so that the largest coordinate of each axis is positive: equal points give equal maps.
    """
    centred = points.astype(np.float64) - points.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(points), 2))
    count = min(2, len(sizes))
    flat[:, :count] = left[:, :count] * sizes[:count]
    for axis in range(2):
        if flat[np.abs(flat[:, axis]).argmax(), axis] < 0:
            flat[:, axis] *= -1
    total = float((sizes**2).sum())
    return flat, float((sizes[:2] ** 2).sum()) / total if total else 1.0


def word_map(words: Sequence[str], vectors: np.ndarray, *, title: str, marked: int = 0) -> "Figure":
    """Draw words at the places of their vectors [N, D]."""
    places, share = plane(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
    side = 5 + min(4, len(words) / 20)
    figure = blank(side, side, dpi=120)
    axes = figure.subplots()
    axes.set_title(title, color=INK, fontsize=10, parse_math=False)
    colours = [BARS[1] if number < marked else BARS[0] for number in range(len(words))]
    axes.scatter(places[:, 0], places[:, 1], s=9, color=colours)
    for number, (word, place) in enumerate(zip(words, places, strict=True)):
        name_point(axes, word, place, color=INK, fontweight="bold" if number < marked else "normal")
    axes.set_xlabel(f"principal components of unit vectors, {100 * share:.0f} % of their variance", color=INK)
    axes.margins(0.12)
    plain_axes(axes, labelsize=7)
    return figure
