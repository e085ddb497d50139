"""Forecasts without a model, the naive errors of MASE and RMSSE, and the blocks that intervals draw.

Neighbouring windows share most of their values, so the bootstrap resamples blocks of windows.
Read next: numbers.py, the scores; intervals.py, the intervals.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

Baselines = Mapping[str, Callable[[np.ndarray], np.ndarray]]
"""Functions from pasts [B, L] to forecasts [B, H], by name."""


def seasonal(past: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """The last season, repeated; the last value if it is 1, or the past is shorter than it."""
    season = season if season <= past.shape[1] else 1
    return np.tile(past[:, -season:], (1, -(-horizon // season)))[:, :horizon]


class NaiveErrors(NamedTuple):
    """The errors of repeating the last season in a training part: the units of MASE and of RMSSE."""

    absolute: float  # mean
    squared: float  # mean


def naive_errors(train: np.ndarray, season: int) -> NaiveErrors:
    """The errors of repeating the last season in a training part [T].

    NaN if no two values can be compared or none ever changes.

    Source: Hyndman and Koehler 2006.
    """
    steps = np.abs(train[season:] - train[:-season])
    steps = steps[np.isfinite(steps)]
    if not steps.any():
        return NaiveErrors(float("nan"), float("nan"))
    return NaiveErrors(float(steps.mean()), float(np.square(steps).mean()))


class Blocks(NamedTuple):
    """Windows that are resampled together."""

    numbers: np.ndarray  # [N] block number of each window
    about: str  # how the blocks were made, for signatures


def blocks_of(chosen: np.ndarray, horizon: int, *, apart: bool) -> Blocks:
    """Blocks of `horizon` consecutive forecast origins.

    Args:
        chosen: [N, 2] windows: series number, first row of the future.

    Source: Carlstein 1986, "The use of subseries values for estimating the variance of a general statistic
        from a stationary sequence" (blocks that do not overlap).
    """
    times = (chosen[:, 1] - chosen[:, 1].min()) // max(1, horizon)
    keys = np.stack([chosen[:, 0] if apart else np.zeros_like(times), times], 1)
    numbers = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return Blocks(numbers, f"blocks of {horizon} origins" + (" of a series" if apart else ""))
