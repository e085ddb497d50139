"""A closed-form forecaster as a network's starting point: ridge regression, the last season, the last value.

Each is a product of a window and a matrix, and so is a mixture of them. Their errors on the validation part
follow from its second moments alone. With `level`, ridge regression may also depend on the last value itself,
so that it returns to the mean of the training part, or have no constant, so that it has no drift.

Which of these forms is best is judged on stretches. The validation part alone is one short stretch, such as
one swing of a random walk. So the training part is cut into stretches too; the later ones are forecast by
fits on what comes before them. All of this follows from sums over windows, which are computed once.
Read next: model.py, which learns the residuals.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.data.windows import SeriesWindows

ROWS = 2048  # windows per step


class Moments(NamedTuple):
    """Sums over windows whose future has no gap; x is a window minus its last value, the level, and a one."""

    inner: np.ndarray  # [D, D] x x'
    outer: np.ndarray  # [D, H] x y'
    square: np.ndarray  # [H] y²
    windows: int

    def __add__(self, other: "Moments") -> "Moments":  # type: ignore[override]
        inner, outer, square, windows = other
        return Moments(self.inner + inner, self.outer + outer, self.square + square, self.windows + windows)

    def errors(self, weight: np.ndarray) -> np.ndarray:
        """[H] mean squared errors of y = W x."""
        total = (weight * (self.inner @ weight)).sum(0) - 2 * (weight * self.outer).sum(0) + self.square
        return np.maximum(total, 0) / max(1, self.windows)

    def ridge(self, penalty: float, kept: np.ndarray) -> np.ndarray:
        """The ridge regression on the kept [D] inputs; the constant, which is last, has no penalty."""
        if not self.windows:
            return np.zeros_like(self.outer)
        costs = np.full(len(kept), penalty)
        costs[-1] = 0.0
        inner = (self.inner + np.diag(costs))[np.ix_(kept, kept)]
        weight = np.zeros_like(self.outer)
        weight[kept] = np.linalg.solve(inner, self.outer[kept])
        return weight


def moments(windows: SeriesWindows, chosen: np.ndarray, *, level: bool = False, most: int = 0) -> Moments:
    """The sums of some windows.

    Args:
        windows: of the series.
        chosen: [N, 2] as `windows.of` gives them.
        level: whether x has the level.
        most: take every k-th window, so that there are no more than this; 0 takes all.
    """
    size, horizon = windows.lookback + 1 + level, windows.horizon
    inner, outer = np.zeros((size, size)), np.zeros((size, horizon))
    square, count = np.zeros(horizon), 0
    chosen = chosen[:: -(-len(chosen) // most) if most and len(chosen) else 1]
    for at in range(0, len(chosen), ROWS):
        past, future, _ = windows.take(chosen[at : at + ROWS])
        whole = np.isfinite(future).all(1)
        last = past[whole, -1:]
        x = np.concatenate([past[whole] - last, last[:, : int(level)], np.ones((len(last), 1))], 1)
        y = future[whole] - last
        inner, outer = inner + x.T @ x, outer + x.T @ y
        square, count = square + np.square(y).sum(0), count + len(y)
    return Moments(inner, outer, square, count)


STRETCHES = 8
"""Maximum number of stretches of the training part; each is at least two horizons long."""

FIRST = 3
"""Number of stretches that are fitted but never forecast."""

FORM_PENALTIES = (1.0, 1e2, 1e4, 1e6)

KINDS = ((False, True), (False, False), (True, True), (True, False))
"""Whether a form reads the level and has a constant; plain ridge regression first."""

LONGER = 0.01
"""A longer past is read only if it is better by this share."""


class RidgeForm(NamedTuple):
    """A ridge regression: how many of the newest rows it reads, and what beside them."""

    rows: int
    level: bool
    constant: bool
    penalty: float

    @property
    def name(self) -> str:
        """For the first lines of a training."""
        also = (", level" if self.level else "") + ("" if self.constant else ", no constant")
        return f"ridge regression (penalty {self.penalty:g}{also})"

    def weight(self, sums: Moments) -> np.ndarray:
        """Fit to sums with the level."""
        size = len(sums.inner)
        kept = np.zeros(size, dtype=bool)
        kept[size - 2 - self.rows : size - 2] = True
        kept[-2:] = self.level, self.constant
        return sums.ridge(self.penalty, kept)


class FormErrors(NamedTuple):
    """The mean squared errors of each form on each stretch."""

    forms: Mapping[RidgeForm, np.ndarray]  # [K]
    fits: Sequence[Moments]  # what the forms were fitted to, before each stretch
    stretches: Sequence[Moments]

    def of(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """[K] the errors of weights, one for each stretch."""
        return np.array(
            [one.errors(weight).mean() for weight, one in zip(weights, self.stretches, strict=True)]
        )

    def best(self, rows: int) -> RidgeForm:
        """Plain ridge regression on so many rows, or another form that is proven to be better."""
        found = [self._of_kind(rows, *kind) for kind in KINDS]
        plain = self.forms[found[0]]
        proven = [form for form in found[1:] if better(self.forms[form], plain)]
        return min([found[0], *proven], key=lambda form: score(self.forms[form]))

    def rows(self, lookbacks: Sequence[int]) -> int:
        """The shortest of rising lookbacks whose best form is about as good as that of any other."""
        scores = [score(self.forms[self.best(rows)]) for rows in lookbacks]
        least = min(scores) + LONGER
        return next(rows for rows, one in zip(lookbacks, scores, strict=True) if one <= least)

    def _of_kind(self, rows: int, level: bool, constant: bool) -> RidgeForm:
        kind = [form for form in self.forms if form[:3] == (rows, level, constant)]
        return min(kind, key=lambda form: score(self.forms[form]))


def score(errors: np.ndarray) -> float:
    """The mean logarithm: a stretch counts the same, however large its values are."""
    return float(np.log(np.maximum(errors, 1e-12)).mean())


def better(errors: np.ndarray, others: np.ndarray) -> bool:
    """Whether errors on the same stretches are smaller by two standard errors.

    Example:
        >>> better(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.2, 3.4]))
        True
        >>> better(np.array([1.0, 2.0, 3.0]), np.array([0.9, 4.0, 3.4]))
        False
    """
    gains = np.log(np.maximum(others, 1e-12)) - np.log(np.maximum(errors, 1e-12))
    if len(gains) < 3:
        return False
    return bool(gains.mean() > 2 * gains.std(ddof=1) / len(gains) ** 0.5)


def judge(windows: SeriesWindows, lookbacks: Sequence[int], *, most: int = 0) -> FormErrors:
    """The errors of every form.

    Args:
        windows: of the training and the validation part.
        lookbacks: numbers of rows that a form may read, at most the windows' own.
        most: maximum number of windows of a part; 0 for all.
    """
    pieces, valid = _pieces(windows, most), moments(windows, windows.of(1), level=True, most=most)
    fits, stretches = [], []
    for at in range(FIRST, (len(pieces) + 1) // 2):
        if pieces[2 * at].windows:
            fits.append(sum(pieces[1 : 2 * at - 1], start=pieces[0]))
            stretches.append(pieces[2 * at])
    if valid.windows or not fits:  # every validation window may have a gap
        fits.append(sum(pieces[1:], start=pieces[0]))
        stretches.append(valid if valid.windows else fits[-1])
    judged = FormErrors({}, fits, stretches)
    forms = [
        RidgeForm(rows, level, constant, penalty)
        for rows in lookbacks
        for level, constant in KINDS
        for penalty in FORM_PENALTIES
    ]
    return judged._replace(forms={form: judged.of([form.weight(fit) for fit in fits]) for form in forms})


def _pieces(windows: SeriesWindows, most: int) -> list[Moments]:
    """The sums of each training stretch, and between two of them those of the windows that are in both."""
    chosen = windows.of(0)
    numbers, starts = chosen.T
    begin, rows = np.zeros((2, numbers.max() + 1), dtype=np.int64)
    for number in np.unique(numbers):
        own = starts[numbers == number]
        begin[number], rows[number] = own.min(), np.ptp(own) + windows.horizon
    count = max(1, min(STRETCHES, int(rows[np.unique(numbers)].min()) // (2 * windows.horizon)))
    first, last = starts - begin[numbers], starts - begin[numbers] + windows.horizon - 1
    places = first * count // rows[numbers] + last * count // rows[numbers]  # even inside of a stretch
    return [
        moments(windows, chosen[places == at], level=True, most=-(-most // count))
        for at in range(2 * count - 1)
    ]


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


def fit(windows: SeriesWindows, season: int, *, level: bool = False) -> Baseline:
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


def _of_stretches(judged: FormErrors, windows: SeriesWindows, season: int) -> Baseline:
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


def _still(windows: SeriesWindows, size: int, season: int) -> dict[str, np.ndarray]:
    """Matrices [size, H] that repeat the last value, or the last season, relative to the last value."""
    still = {"last value": np.zeros((size, windows.horizon))}
    if 1 < season <= windows.lookback:
        steps = np.arange(windows.horizon)
        still["last season"] = np.zeros((size, windows.horizon))
        still["last season"][windows.lookback - season + steps % season, steps] = 1.0
    return still


def lookback_of(cut: Callable[[int], SeriesWindows], season: int, shortest: int, longest: int) -> int:
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
