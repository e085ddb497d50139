"""Data of figures as plain records, which can be created without matplotlib.

Read next: series.py, which draws forecasts and recordings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
from weft.errors import ShapeError

Figure: TypeAlias = "matplotlib.figure.Figure"
Axes: TypeAlias = "matplotlib.axes.Axes"
"""Types of matplotlib by their names, as importing it takes 0.3 s, and most users of a task draw nothing."""


class ForecastRecord(NamedTuple):
    """A series and its forecast, in the units of the data."""

    name: str
    past_times: np.ndarray  # [L] datetime64 as clocks show them, or row numbers
    past: np.ndarray  # [L]
    times: np.ndarray  # [H]
    best: np.ndarray  # [H]
    quantiles: np.ndarray | None  # [H, Q]
    levels: tuple[float, ...]  # Q of the quantiles
    actual: np.ndarray | None = None  # [H] what was measured, where it is known
    shown: Sequence[str] = ()  # [H] times as text, with their offsets from UTC
    deviation: float = 1.0  # of the series


class Heard(NamedTuple):
    """A recording, and where its transcript listened."""

    frames: np.ndarray  # [S, F]
    weights: np.ndarray  # [T, S'] attention for each token, S' = ceil(S / stride)
    pieces: list[str]  # T, of the tokens, the end too; none without attention
    stride: int  # frames that a column of the weights stands for
    hop: float  # seconds from frame to frame


class Bucket(NamedTuple):
    """Tokens with about the same frequency in training."""

    least: int
    tokens: int
    nats: dict[str, float]  # per token, by model


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


def merge(
    weights: np.ndarray, source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]
) -> np.ndarray:
    """Attention [T, S] between words: the sum over a source word's pieces, the mean over a target word's.

    So the weights of each target word have the same sum as before. Pieces that belong to no word, such as the
    end symbol, are ignored.
    """
    over_target = _membership(target, weights.shape[0], "target")
    over_target /= np.maximum(over_target.sum(1, keepdims=True), 1)
    return over_target @ weights @ _membership(source, weights.shape[1], "source").T


def pharaoh(weights: np.ndarray) -> str:
    """Each target word's strongest source word, the first of ties, as "source-target" pairs from 0."""
    if weights.shape[1] == 0:
        return ""
    return " ".join(f"{s}-{t}" for t, s in enumerate(weights.argmax(1)))


def _membership(words: Sequence[Sequence[int]], pieces: int, side: str) -> np.ndarray:
    """[words, pieces]: 1 where a piece belongs to a word."""
    member = np.zeros((len(words), pieces))
    for number, positions in enumerate(words):
        if not positions or min(positions) < 0 or max(positions) >= pieces:
            raise ShapeError(
                f"{side} word {number}: expected one or more pieces from 0 to {pieces - 1}, "
                f"got {list(positions)}"
            )
        member[number, list(positions)] = 1
    return member
