"""Baselines of forecasting, and sums of forecast errors.

All baselines see windows in the scale of the training part. The ridge regression has a closed form and is
shared by all series; it subtracts each window's last value (Toner & Darlow 2024 find it hard to beat).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

Parts = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]
"""Called for each pass over the data; yields pasts [B, L] and futures [B, H], batch by batch."""

Baselines = Mapping[str, Callable[[np.ndarray], np.ndarray]]
"""Functions from pasts [B, L] to forecasts [B, H], by name."""

PENALTIES = (1e-1, 1e1, 1e2, 1e3, 1e4, 1e5)


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


class Ridge:
    """y = W x + b on windows relative to their last value; the penalty is chosen on the validation part.

    Args:
        batches: pasts [B, L] and futures [B, H] of the training part; windows with missing values are
            skipped.
        valid: the same for the validation part.
    """

    def __init__(
        self,
        batches: Parts,
        valid: Parts,
    ) -> None:
        inner, outer = self._sums(batches)
        inner[-1, -1] = max(inner[-1, -1], 1.0)  # the number of windows; if none is whole, all weights are 0
        best = np.inf
        for penalty in PENALTIES:
            weight = np.linalg.solve(inner + penalty * np.diag([*np.ones(len(inner) - 1), 0.0]), outer)
            error = self._error(weight, valid)
            if error < best:
                best, self.penalty, self.weight = error, penalty, weight

    def forecast(self, past: np.ndarray) -> np.ndarray:
        """Forecast [B, H] from pasts [B, L]."""
        return _with_constant(past - past[:, -1:]) @ self.weight + past[:, -1:]

    @staticmethod
    def _sums(
        batches: Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]],
    ) -> tuple[np.ndarray, np.ndarray]:
        inner, outer = np.zeros((0, 0)), np.zeros((0, 0))
        for past, future in batches():
            whole = np.isfinite(future).all(1)
            x = _with_constant((past - past[:, -1:])[whole])
            y = (future - past[:, -1:])[whole]
            inner = x.T @ x + (inner if inner.size else 0)
            outer = x.T @ y + (outer if outer.size else 0)
        return inner, outer

    def _error(self, weight: np.ndarray, valid: Parts) -> float:
        total, count = 0.0, 0
        for past, future in valid():
            forecast = _with_constant(past - past[:, -1:]) @ weight + past[:, -1:]
            error = np.nan_to_num(forecast - future)
            total, count = total + float(np.square(error).sum()), count + int(np.isfinite(future).sum())
        return total / max(1, count)


def _with_constant(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones((len(x), 1))], 1)


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
