"""Forecast errors in the units of the data and without units, with intervals over blocks of time.

Neighbouring windows share most of their values, so the bootstrap resamples blocks of windows.
Read next: series.py, errors in the scale of the training part; intervals.py, the intervals.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.means import Form, mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines
from weft.metrics.series import pinball

SUMS = ("values", "absolute", "squared", "symmetric", "scaled", "scaled values", "pinball", "inside")
"""Columns of the statistics: sums over the steps of a window."""


def sums(
    best: np.ndarray,
    actual: np.ndarray,
    scale: np.ndarray,
    quantiles: np.ndarray | None = None,
    levels: Sequence[float] = (),
) -> np.ndarray:
    """[B, 8] the SUMS of each window.

    Args:
        best: [B, H] point forecasts, in units of the data.
        actual: [B, H] measured values, NaN where missing.
        scale: [B] error of the naive forecast on the training part (naive_error), or NaN.
        quantiles: [B, H, Q] forecast quantiles, if any.
        levels: [Q] their levels.
    """
    error = np.abs(best - actual)
    size = np.abs(best) + np.abs(actual)
    symmetric = np.divide(2 * error, size, out=np.zeros_like(error), where=size > 0)
    scaled = error / scale[:, None]
    loss, inside = np.zeros(len(best)), np.zeros(len(best))
    if quantiles is not None:
        loss = np.nansum(pinball(quantiles, actual, levels), 1)
        inside = ((actual >= quantiles[..., 0]) & (actual <= quantiles[..., -1])).sum(1)
    columns = [
        np.isfinite(actual).sum(1),
        np.nansum(error, 1),
        np.nansum(np.square(error), 1),
        np.nansum(np.where(np.isfinite(actual), symmetric, 0), 1),
        np.nansum(scaled, 1),
        np.isfinite(scaled).sum(1),
        loss,
        inside,
    ]
    return np.stack(columns, 1).astype(np.float64)


def naive_error(train: np.ndarray, season: int) -> float:
    """The mean absolute error of repeating the last season in a training part [T], the unit of MASE.

    NaN if no two values can be compared or none ever changes.

    Source: Hyndman and Koehler 2006.

    Example:
        >>> naive_error(np.array([1.0, 5.0, 2.0, 7.0]), 2)
        1.5
    """
    steps = np.abs(train[season:] - train[:-season])
    steps = steps[np.isfinite(steps)]
    return float(steps.mean()) if len(steps) and steps.any() else float("nan")


def scores(
    statistics: np.ndarray,
    baselines: Mapping[str, np.ndarray],
    *,
    season: int,
    levels: Sequence[float],
    about: str,
) -> list[ScoreWithBaselines]:
    """MAE, RMSE, sMAPE and MASE; with levels also the pinball loss and the coverage of the outer levels.

    Args:
        statistics: [blocks, 8].
        baselines: [8] statistics of each baseline over all blocks.
        season: season length of MASE, in steps.
        levels: of the quantiles; empty for a point forecast.
        about: added to every signature.
    """
    named = ",".join(map(str, levels))
    wanted: list[tuple[str, str, str, Form, str]] = [
        ("MAE in units", "absolute", "values", "mean", "unit:data"),
        ("RMSE in units", "squared", "values", "root", "unit:data"),
        ("sMAPE", "symmetric", "values", "percent", "unit:%"),
        ("MASE", "scaled", "scaled values", "mean", f"season:{season}"),
    ]
    if levels:
        share = f"{levels[0]}..{levels[-1]}|expected:{100 * (levels[-1] - levels[0]):.0f}"
        wanted += [
            ("pinball in units", "pinball", "values", "mean", f"unit:data|levels:{named}"),
            ("coverage", "inside", "values", "percent", f"unit:%|between:{share}"),
        ]
    found = []
    for name, over, under, form, unit in wanted:
        above, below = SUMS.index(over), SUMS.index(under)
        if not statistics[:, below].any():  # MASE of series that never change
            continue
        higher = name == "coverage"
        metric = ratio(name, f"{unit}|{about}", higher_is_better=higher, form=form)
        # a forecast without quantiles has the absolute error as its pinball loss at every level
        own = SUMS.index("absolute") if over == "pinball" else above
        values = (
            {} if higher else {key: float(metric.value(one[[own, below]])) for key, one in baselines.items()}
        )
        found.append(mean_of(metric, statistics[:, above], statistics[:, below], baselines=values))
    return found


class Blocks(NamedTuple):
    """Windows that are resampled together.

    Fields:
        numbers: [N] block number of each window.
        about: how the blocks were made, for signatures.
    """

    numbers: np.ndarray
    about: str


def blocks_of(chosen: np.ndarray, horizon: int, *, apart: bool) -> Blocks:
    """Blocks of `horizon` consecutive forecast origins.

    Args:
        chosen: [N, 2] windows: series number, first row of the future.
        horizon: H.
        apart: give each series its own blocks; otherwise a block spans all series.

    Source: Carlstein 1986 (non-overlapping blocks).
    """
    times = (chosen[:, 1] - chosen[:, 1].min()) // max(1, horizon)
    keys = np.stack([chosen[:, 0] if apart else np.zeros_like(times), times], 1)
    numbers = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return Blocks(numbers, f"blocks of {horizon} origins" + (" of a series" if apart else ""))
