"""A closed-form forecaster as a network's starting point: ridge regression, the last season, the last value.

Each is a product of a window and a matrix, and so is a mixture of them. Their errors on the validation part
follow from its second moments alone. With `level`, a forecast may also depend on the last value itself, so
that it returns to the mean of the training part, or have no constant, so that it has no drift: the validation
part decides. Read next: model.py, which learns the residuals.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from weft.data.windows import Windows

PENALTIES = tuple(10.0**power for power in range(-1, 8))
SHARES = (0.75, 0.5, 0.25)  # of ridge regression, mixed with a repeated value or season
MARGIN = 0.05
"""Ridge regression is used unless a mixture is better on the validation part by this share."""

LEVEL_MARGIN = 0.01
"""The same for ridge regression without a constant, and for a longer lookback."""

BLOCKS = 4
"""Minimum number of validation blocks, of a horizon each, for the level: less proves nothing."""

LONGEST = 720  # rows of a lookback that is tried
SAMPLE = 30_000  # windows of a part that judge a lookback

ROWS = 2048  # windows per step


class Baseline(NamedTuple):
    """y = W (x - last; 1) + last in the scale of the series; with the level W (x - last; last; 1) + last."""

    name: str
    weight: np.ndarray  # [L + 1, H] or, with the level, [L + 2, H]; the constant in the last row
    spread: np.ndarray  # [H] root mean squared error at each step ahead
    error: float  # mean squared error on the validation part


class Moments(NamedTuple):
    """Sums over windows whose future has no gap; x is a window minus its last value, the level, and a one."""

    inner: np.ndarray  # [D, D] x x'
    outer: np.ndarray  # [D, H] x y'
    square: np.ndarray  # [H] y²
    windows: int

    def errors(self, weight: np.ndarray) -> np.ndarray:
        """[H] mean squared errors of y = W x."""
        total = (weight * (self.inner @ weight)).sum(0) - 2 * (weight * self.outer).sum(0) + self.square
        return np.maximum(total, 0) / max(1, self.windows)

    def ridge(self, penalty: float, kept: np.ndarray) -> np.ndarray:
        """The ridge regression on the kept [D] inputs; the constant, which is last, has no penalty."""
        costs = np.full(len(kept), penalty)
        costs[-1] = 0.0
        inner = (self.inner + np.diag(costs))[np.ix_(kept, kept)]
        weight = np.zeros_like(self.outer)
        weight[kept] = np.linalg.solve(inner, self.outer[kept])
        return weight


def fit(windows: Windows, season: int, *, level: bool = False, most: int = 0) -> Baseline:
    """The closed form with the smallest error on the validation part, fitted on the training part.

    Args:
        windows: of both parts.
        season: rows per season.
        level: also try to read the last value itself, and to leave out the constant.
        most: maximum number of windows of a part; 0 for all.
    """
    train, valid = (moments(windows, part, level=level, most=most) for part in (0, 1))
    if not valid.windows:  # every window has a gap
        valid = train

    def error(weight: np.ndarray) -> float:
        return float(valid.errors(weight).mean())

    lookback, horizon = windows.lookback, windows.horizon
    still = {"last value": np.zeros_like(train.outer)}
    if 1 < season <= lookback:
        still["last season"] = _season(lookback, len(train.outer), horizon, season)
    found = dict(still)
    if train.windows:
        size = len(train.outer)
        kept = np.arange(size) != (size - 2 if level else size)
        best, ridge = _best_ridge(train, error, kept, "", constants=level)
        if level:
            other = _best_ridge(train, error, np.ones(size, dtype=bool), ", level", constants=True)
            if _proven(windows, other[1], ridge):
                best, ridge = other
        found |= {
            f"{share:g} {best}, {1 - share:g} {name}": share * ridge + (1 - share) * weight
            for name, weight in still.items()
            for share in SHARES
        }
    name = min(found, key=lambda name: error(found[name]))
    if train.windows:
        found[best] = ridge
        name = name if error(found[name]) < (1 - MARGIN) * error(ridge) else best
    weight = found[name]
    spread = np.sqrt((train.errors(weight) + valid.errors(weight)) / 2)
    return Baseline(name, weight, np.maximum(spread, 1e-3), error(weight))


def _best_ridge(
    train: Moments, error: Callable[[np.ndarray], float], kept: np.ndarray, form: str, *, constants: bool
) -> tuple[str, np.ndarray]:
    """The name and weights of the ridge regression with the smallest error.

    Args:
        train: its sums.
        error: of weights, on the validation part.
        kept: [D] its inputs.
        form: of the name.
        constants: also try no constant.
    """
    kinds = {form: kept}
    if constants:
        kinds[f"{form}, no constant"] = kept & (np.arange(len(kept)) < len(kept) - 1)
    found: dict[str, np.ndarray] = {}
    for kind, inputs in kinds.items():
        named = {f"(penalty {penalty:g}{kind})": train.ridge(penalty, inputs) for penalty in PENALTIES}
        best = min(named, key=lambda name: error(named[name]))
        found[f"ridge regression {best}"] = named[best]
    first, name = next(iter(found)), min(found, key=lambda name: error(found[name]))
    name = name if error(found[name]) < (1 - LEVEL_MARGIN) * error(found[first]) else first
    return name, found[name]


def _proven(windows: Windows, weight: np.ndarray, other: np.ndarray) -> bool:
    """Whether the level is better than the other weights by two standard errors over validation blocks.

    A short validation part, such as one swing of a random walk, otherwise looks as if it returned.
    """
    chosen = windows.of(1)
    if not len(chosen):
        return False
    blocks = (chosen[:, 1] - chosen[:, 1].min()) // windows.horizon
    gains = np.zeros(len(chosen))
    for at in range(0, len(chosen), ROWS):
        past, future, _ = windows.take(chosen[at : at + ROWS])
        last = past[:, -1:]
        x = np.concatenate([past - last, last, np.ones((len(last), 1))], 1)
        errors = [np.square(x @ one + last - future).sum(1) for one in (weight, other)]
        gains[at : at + ROWS] = np.nan_to_num(errors[1] - errors[0])  # 0 for a future with a gap
    each = np.bincount(blocks, gains)
    if len(each) < BLOCKS:
        return False
    return bool(each.mean() > 2 * each.std(ddof=1) / len(each) ** 0.5)


def moments(windows: Windows, part: int, *, level: bool = False, most: int = 0) -> Moments:
    """The moments of the windows of a part: 0 training, 1 validation; of `most` of them, or all."""
    size, horizon = windows.lookback + 1 + level, windows.horizon
    inner, outer = np.zeros((size, size)), np.zeros((size, horizon))
    square, count = np.zeros(horizon), 0
    chosen = windows.of(part)
    chosen = chosen[:: -(-len(chosen) // most) if most else 1]
    for at in range(0, len(chosen), ROWS):
        past, future, _ = windows.take(chosen[at : at + ROWS])
        whole = np.isfinite(future).all(1)
        last = past[whole, -1:]
        x = np.concatenate([past[whole] - last, last[:, : int(level)], np.ones((len(last), 1))], 1)
        y = future[whole] - last
        inner, outer = inner + x.T @ x, outer + x.T @ y
        square, count = square + np.square(y).sum(0), count + len(y)
    return Moments(inner, outer, square, count)


def lookback_of(cut: Callable[[int], Windows], season: int, shortest: int, longest: int) -> int:
    """The shortest lookback whose closed form is about as good on the validation part as the best one.

    Args:
        cut: makes windows with a lookback.
        season: rows per season.
        shortest, longest: of the lookbacks tried, each twice the one before.
    """
    tried = [shortest]
    while 2 * tried[-1] <= min(longest, LONGEST):
        tried.append(2 * tried[-1])
    if len(tried) == 1:
        return shortest
    errors = {rows: fit(cut(rows), season, level=True, most=SAMPLE).error for rows in tried}
    least = min(errors.values()) / (1 - LEVEL_MARGIN)
    return next(rows for rows in tried if errors[rows] <= least)


def _season(lookback: int, size: int, horizon: int, season: int) -> np.ndarray:
    """The matrix [size, H] that repeats the last season, as differences from the last value."""
    weight = np.zeros((size, horizon))
    steps = np.arange(horizon)
    weight[lookback - season + steps % season, steps] = 1.0
    return weight
