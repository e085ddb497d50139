"""A closed-form forecaster as a network's starting point: ridge regression, the last season, the last value.

Each is a product of a window and a matrix, and so is a mixture of them. Their errors on the validation part
follow from its second moments alone. Read next: model.py, which learns the residuals.
"""

from typing import NamedTuple

import numpy as np

from weft.data.windows import Windows

PENALTIES = tuple(10.0**power for power in range(-1, 8))
SHARES = (0.75, 0.5, 0.25)  # of ridge regression, mixed with a repeated value or season
MARGIN = 0.05
"""Ridge regression is used unless another one is better on the validation part by this share."""

ROWS = 2048  # windows per step


class Baseline(NamedTuple):
    """y = W (x - last; 1) + last, in the scale of the series."""

    name: str
    weight: np.ndarray  # [L + 1, H], the constant in the last row
    spread: np.ndarray  # [H] root mean squared error at each step ahead


class Moments(NamedTuple):
    """Sums over windows whose future has no gap; x is a window minus its last value, with a one appended."""

    inner: np.ndarray  # [L + 1, L + 1] x x'
    outer: np.ndarray  # [L + 1, H] x y'
    square: np.ndarray  # [H] y²
    windows: int

    def errors(self, weight: np.ndarray) -> np.ndarray:
        """[H] mean squared errors of y = W x."""
        total = (weight * (self.inner @ weight)).sum(0) - 2 * (weight * self.outer).sum(0) + self.square
        return np.maximum(total, 0) / max(1, self.windows)


def fit(windows: Windows, season: int) -> Baseline:
    """The closed form with the smallest error on the validation part, fitted on the training part.

    Args:
        windows: of both parts.
        season: rows per season.
    """
    train, valid = moments(windows, 0), moments(windows, 1)
    if not valid.windows:  # every window has a gap
        valid = train
    lookback, horizon = windows.lookback, windows.horizon
    still = {"last value": np.zeros((lookback + 1, horizon))}
    if 1 < season <= lookback:
        still["last season"] = _season(lookback, horizon, season)
    constant = np.diag([*np.ones(lookback), 0.0])
    ridges = {
        f"ridge regression (penalty {penalty:g})": np.linalg.solve(
            train.inner + penalty * constant, train.outer
        )
        for penalty in PENALTIES
    }
    found = dict(still)
    if train.windows:
        best = min(ridges, key=lambda name: float(valid.errors(ridges[name]).mean()))
        found |= {
            f"{share:g} {best}, {1 - share:g} {name}": share * ridges[best] + (1 - share) * weight
            for name, weight in still.items()
            for share in SHARES
        }
    name = min(found, key=lambda name: float(valid.errors(found[name]).mean()))
    if train.windows:
        found[best] = ridges[best]
        errors = {one: float(valid.errors(found[one]).mean()) for one in (best, name)}
        name = name if errors[name] < (1 - MARGIN) * errors[best] else best
    spread = np.sqrt((train.errors(found[name]) + valid.errors(found[name])) / 2)
    return Baseline(name, found[name], np.maximum(spread, 1e-3))


def moments(windows: Windows, part: int) -> Moments:
    """The moments of the windows of a part: 0 training, 1 validation."""
    size, horizon = windows.lookback + 1, windows.horizon
    inner, outer = np.zeros((size, size)), np.zeros((size, horizon))
    square, count = np.zeros(horizon), 0
    chosen = windows.of(part)
    for at in range(0, len(chosen), ROWS):
        past, future, _ = windows.take(chosen[at : at + ROWS])
        whole = np.isfinite(future).all(1)
        last = past[whole, -1:]
        x = np.concatenate([past[whole] - last, np.ones((len(last), 1))], 1)
        y = future[whole] - last
        inner, outer = inner + x.T @ x, outer + x.T @ y
        square, count = square + np.square(y).sum(0), count + len(y)
    return Moments(inner, outer, square, count)


def _season(lookback: int, horizon: int, season: int) -> np.ndarray:
    """The matrix that repeats the last season, as differences from the last value."""
    weight = np.zeros((lookback + 1, horizon))
    steps = np.arange(horizon)
    weight[lookback - season + steps % season, steps] = 1.0
    return weight
