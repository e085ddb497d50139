"""A closed-form forecaster as a network's starting point: ridge regression, the last season, the last value.

Each is a product of a window and a matrix, and so is a mixture of them. Their errors on the validation part
follow from its second moments alone. With `level`, ridge regression may also depend on the last value itself,
so that it returns to the mean of the training part, or have no constant, so that it has no drift:
stretches.py decides. Read next: model.py, which learns the residuals.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from weft.data.windows import Windows
from weft.tasks.forecast.moments import Moments, moments
from weft.tasks.forecast.stretches import Judged, judge, score

PENALTIES = tuple(10.0**power for power in range(-1, 8))
SHARES = (0.75, 0.5, 0.25)  # of ridge regression, mixed with a repeated value or season
MARGIN = 0.05
"""Ridge regression is used unless a mixture is better by this share."""

LONGEST = 720  # rows of a lookback that is tried
SAMPLE = 30_000  # windows of a part that judge a lookback


class Baseline(NamedTuple):
    """y = W (x - last; 1) + last in the scale of the series; with the level W (x - last; last; 1) + last."""

    name: str
    weight: np.ndarray  # [L + 1, H] or, with the level, [L + 2, H]; the constant in the last row
    spread: np.ndarray  # [H] root mean squared error at each step ahead
    error: float  # mean squared error on the validation part


def fit(windows: Windows, season: int, *, level: bool = False) -> Baseline:
    """The closed form with the smallest errors, fitted on the training part.

    Args:
        windows: of the training and the validation part.
        season: rows per season.
        level: also try to read the last value itself, and to leave out the constant.
    """
    if level:
        return _of_stretches(judge(windows, [windows.lookback]), windows, season)
    train, valid = (moments(windows, windows.of(part)) for part in (0, 1))
    if not valid.windows:  # every window has a gap
        valid = train
    found = _still(windows, len(train.outer), season)
    best = ""
    if train.windows:
        kept = np.ones(len(train.outer), dtype=bool)
        named = {f"ridge regression (penalty {one:g})": train.ridge(one, kept) for one in PENALTIES}
        best = min(named, key=lambda name: valid.errors(named[name]).mean())
        found = _mixed(best, named[best], found)
    errors = {name: float(valid.errors(weight).mean()) for name, weight in found.items()}
    return _baseline(found, errors, best, train, valid)


def _of_stretches(judged: Judged, windows: Windows, season: int) -> Baseline:
    """The form that is best on the stretches, or a mixture with it."""
    train, valid = judged.fits[-1], judged.stretches[-1]
    still = _still(windows, len(train.outer), season)
    form = judged.best(windows.lookback)
    found = _mixed(form.name, form.weight(train), still)
    before = [_mixed(form.name, form.weight(fit), still) for fit in judged.fits]
    errors = {name: float(np.exp(score(judged.of([one[name] for one in before])))) for name in found}
    return _baseline(found, errors, form.name, train, valid)


def _baseline(
    found: dict[str, np.ndarray], errors: dict[str, float], best: str, train: Moments, valid: Moments
) -> Baseline:
    """Ridge regression, unless another one of the weights is clearly better.

    Args:
        found: weights by name.
        errors: that decide.
        best: the name of the ridge regression; empty without one.
        train, valid: both parts.
    """
    name = min(errors, key=lambda name: errors[name])
    if best and errors[name] >= (1 - MARGIN) * errors[best]:
        name = best
    weight = found[name]
    error = valid.errors(weight)
    spread = np.sqrt((train.errors(weight) + error) / 2)
    return Baseline(name, weight, np.maximum(spread, 1e-3), float(error.mean()))


def _mixed(best: str, ridge: np.ndarray, still: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The ridge regression, repeated values, and mixtures of both."""
    mixtures = {
        f"{share:g} {best}, {1 - share:g} {name}": share * ridge + (1 - share) * weight
        for name, weight in still.items()
        for share in SHARES
    }
    return {**still, **mixtures, best: ridge}


def _still(windows: Windows, size: int, season: int) -> dict[str, np.ndarray]:
    """Matrices [size, H] that repeat the last value, or the last season, relative to the last value."""
    still = {"last value": np.zeros((size, windows.horizon))}
    if 1 < season <= windows.lookback:
        steps = np.arange(windows.horizon)
        still["last season"] = np.zeros((size, windows.horizon))
        still["last season"][windows.lookback - season + steps % season, steps] = 1.0
    return still


def lookback_of(cut: Callable[[int], Windows], season: int, shortest: int, longest: int) -> int:
    """The shortest lookback whose closed form is about as good as the best one.

    Args:
        cut: makes windows with a lookback.
        season: rows per season.
        shortest, longest: of the lookbacks tried, each twice the one before.
    """
    tried = [shortest]
    while 2 * tried[-1] <= min(longest, LONGEST):
        tried.append(2 * tried[-1])
    return judge(cut(tried[-1]), tried, most=SAMPLE).rows(tried) if len(tried) > 1 else shortest
