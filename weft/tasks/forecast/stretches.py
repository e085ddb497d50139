"""Which closed form forecasts a series best: each later stretch of it, from the rows before that stretch.

The validation part alone is one short stretch, such as one swing of a random walk. So the training part is
cut into stretches too; the later ones are forecast by fits on what comes before them. All of this follows
from sums over windows, which are computed once. Read next: baseline.py, which fits the form that is chosen.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.data.windows import Windows
from weft.tasks.forecast.moments import Moments, moments

STRETCHES = 8
"""Maximum number of stretches of the training part; each is at least two horizons long."""

FIRST = 3
"""Number of stretches that are fitted but never forecast."""

PENALTIES = (1.0, 1e2, 1e4, 1e6)

KINDS = ((False, True), (False, False), (True, True), (True, False))
"""Whether a form reads the level and has a constant; plain ridge regression first."""

MARGIN = 0.01
"""A longer past is read only if it is better by this share."""


class Form(NamedTuple):
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


class Judged(NamedTuple):
    """The mean squared errors of each form on each stretch."""

    forms: Mapping[Form, np.ndarray]  # [K]
    fits: Sequence[Moments]  # what the forms were fitted to, before each stretch
    stretches: Sequence[Moments]

    def of(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """[K] the errors of weights, one for each stretch."""
        return np.array(
            [one.errors(weight).mean() for weight, one in zip(weights, self.stretches, strict=True)]
        )

    def best(self, rows: int) -> Form:
        """Plain ridge regression on so many rows, or another form that is proven to be better."""
        found = [self._of_kind(rows, *kind) for kind in KINDS]
        plain = self.forms[found[0]]
        proven = [form for form in found[1:] if better(self.forms[form], plain)]
        return min([found[0], *proven], key=lambda form: score(self.forms[form]))

    def rows(self, lookbacks: Sequence[int]) -> int:
        """The shortest of rising lookbacks whose best form is about as good as that of any other."""
        scores = [score(self.forms[self.best(rows)]) for rows in lookbacks]
        least = min(scores) + MARGIN
        return next(rows for rows, one in zip(lookbacks, scores, strict=True) if one <= least)

    def _of_kind(self, rows: int, level: bool, constant: bool) -> Form:
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


def judge(windows: Windows, lookbacks: Sequence[int], *, most: int = 0) -> Judged:
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
    judged = Judged({}, fits, stretches)
    forms = [
        Form(rows, level, constant, penalty)
        for rows in lookbacks
        for level, constant in KINDS
        for penalty in PENALTIES
    ]
    return judged._replace(forms={form: judged.of([form.weight(fit) for fit in fits]) for form in forms})


def _pieces(windows: Windows, most: int) -> list[Moments]:
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
