"""Baselines of forecasting, and sums of forecast errors.

All baselines see windows in the scale of the training part.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

Baselines = Mapping[str, Callable[[np.ndarray], np.ndarray]]
"""Functions from pasts [B, L] to forecasts [B, H], by name."""


class Errors(NamedTuple):
    """Mean errors over all measured values of all windows."""

    squared: float
    absolute: float
    values: int  # number of measured values
    by_step: np.ndarray  # [H] mean squared error of each step ahead


class ErrorSums:
    """Errors summed over batches.

    Args:
        horizon: H.
    """

    def __init__(self, horizon: int) -> None:
        self._squared, self._count = np.zeros(horizon), np.zeros(horizon)
        self._absolute = 0.0

    def add(self, forecast: np.ndarray, future: np.ndarray) -> None:
        """Add a batch of [B, H] each; missing values (NaN) are ignored."""
        error = np.nan_to_num(forecast - future)
        self._squared += np.square(error).sum(0)
        self._absolute += float(np.abs(error).sum())
        self._count += np.isfinite(future).sum(0)

    def errors(self) -> Errors:
        """Mean errors so far."""
        count = max(1, int(self._count.sum()))
        by_step = self._squared / np.maximum(1, self._count)
        return Errors(float(self._squared.sum()) / count, self._absolute / count, count, by_step)


def repeated(past: np.ndarray, horizon: int) -> np.ndarray:
    """The last value, H times.

    Example:
        >>> repeated(np.array([[1.0, 2.0]]), 3).tolist()
        [[2.0, 2.0, 2.0]]
    """
    return np.repeat(past[:, -1:], horizon, 1)


def seasonal(past: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """The last season, repeated; the last value if the past is shorter than a season.

    Example:
        >>> seasonal(np.array([[9.0, 1.0, 2.0]]), 3, 2).tolist()
        [[1.0, 2.0, 1.0]]
    """
    season = season if season <= past.shape[1] else 1
    return np.tile(past[:, -season:], (1, -(-horizon // season)))[:, :horizon]


def pinball(quantiles: np.ndarray, future: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """[B, H] mean over levels of 2 max(τ e, (τ - 1) e), which approximates the CRPS; NaN where not measured.

    Args:
        quantiles: [B, H, Q] forecasts.
        future: [B, H] measured values.
        levels: [Q] τ of each quantile.
    """
    error = future[..., None] - quantiles
    tau = np.asarray(levels)
    return 2 * np.maximum(tau * error, (tau - 1) * error).mean(-1)  # type: ignore[no-any-return]
