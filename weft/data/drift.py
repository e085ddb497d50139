"""Find where two files stop matching, if one has lines that the other lacks.

Lines are compared by length, numbers and final punctuation. The cheapest alignment of the files, which skips
as few lines as possible, shows the first skipped line. Read next: check.py.

Source: Gale & Church 1993, "A Program for Aligning Sentences in Bilingual Corpora", for the lengths.
"""

import re
from collections.abc import Sequence

import numpy as np

MOST_LINES = 50_000
WIDEST = 200
"""Maximum difference of the line counts."""

SKIP = 8.0
"""Cost of skipping a line, in nats."""

_VARIANCE = 6.8  # of a translation's length, per character (Gale & Church)
_NUMBERS = re.compile(r"\d+")
_ENDS = ".?!:;…"


def first_skip(first: Sequence[str], second: Sequence[str]) -> int | None:
    """The first line, counted from 1, where two files no longer match; None if no place is clear.

    Args:
        first, second: the lines of both files, of different number.

    Example:
        >>> german = [f"Zeile {n}" + " und mehr" * (n % 5) for n in range(40)]
        >>> english = [f"line {n}" + " and more" * (n % 5) for n in range(40) if n != 20]
        >>> first_skip(german, english)
        21
    """
    difference = abs(len(first) - len(second))
    if not 0 < difference <= WIDEST or not first or not second or max(map(len, (first, second))) > MOST_LINES:
        return None
    wide = difference + 8
    marks = _Marks(first, second)
    offsets = np.arange(-wide, wide + 1)  # offset = j - i for line j of the second file
    best = np.where(offsets >= 0, SKIP * offsets, np.inf)
    moves = np.zeros(
        (len(first) + 1, len(offsets)), dtype=np.int8
    )  # 0: matched, 1: skip in the first file, 2: skip in the second
    moves[0, offsets > 0] = 2
    for i in range(1, len(first) + 1):
        matched = best + marks.costs(i - 1, i - 1 + offsets)
        skipped = np.append(best[1:], np.inf) + SKIP
        moves[i] = skipped < matched
        reached = np.minimum(matched, skipped)
        reached[(offsets + i < 0) | (offsets + i > len(second))] = np.inf
        ladder = SKIP * np.arange(len(offsets))
        best = np.minimum.accumulate(reached - ladder) + ladder
        moves[i, best < reached - 1e-9] = 2
    return _first(moves, len(first), len(second), wide)


def _first(moves: np.ndarray, first: int, second: int, wide: int) -> int | None:
    """Trace the cheapest alignment back to its first skip."""
    i, j, found = first, second, None
    while i > 0 or j > 0:
        step = moves[i, j - i + wide]
        if step == 0:
            i, j = i - 1, j - 1
        else:
            i, j = (i - 1, j) if step == 1 else (i, j - 1)
            found = min(i, j) + 1
    return found


class _Marks:
    """The features by which lines are compared."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self.lengths = [np.array([len(line) + 1.0 for line in side]) for side in (first, second)]
        kinds: dict[object, int] = {}
        self.numbers = [
            np.array([kinds.setdefault(tuple(_NUMBERS.findall(line)), len(kinds)) for line in side])
            for side in (first, second)
        ]
        self._none = kinds.get((), -1)
        self.ends = [
            np.array([_ENDS.find(line.rstrip()[-1:] or "x") for line in side]) for side in (first, second)
        ]
        self.usual = self.lengths[1].sum() / self.lengths[0].sum() * len(first) / len(second)
        logs = [np.log(side) for side in self.lengths]
        self.spread = max(
            0.1, float(np.var(logs[0]) + np.var(logs[1]))
        )  # variance of the log ratio of unrelated lines

    def costs(self, i: int, j: np.ndarray) -> np.ndarray:
        """Costs of matching line i with lines j: negative log-likelihood ratios of pair against unrelated."""
        real = (j >= 0) & (j < len(self.lengths[1]))
        at = np.clip(j, 0, len(self.lengths[1]) - 1)
        first, second = self.lengths[0][i], self.lengths[1][at]
        ratio = np.log(second / first / self.usual)
        variance = np.minimum(_VARIANCE / ((first + second) / 2), self.spread)
        cost = (ratio**2) * (1 / variance - 1 / self.spread) / 2 + np.log(variance / self.spread) / 2
        cost = np.minimum(cost, 4.0)  # do not skip because of one free translation
        equal = self.numbers[0][i] == self.numbers[1][at]
        some = (self.numbers[0][i] != self._none) | (self.numbers[1][at] != self._none)
        cost = cost + np.where(some, np.where(equal, -3.0, 2.0), 0.0)
        cost = cost + np.where(self.ends[0][i] == self.ends[1][at], -0.2, 0.8)
        return np.where(real, cost, np.inf)
