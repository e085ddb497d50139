"""Data of figures as plain records, which can be created without matplotlib.

Read next: series.py, which draws forecasts and recordings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

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
