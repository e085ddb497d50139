"""The mean of a score over several trainings, with Student's interval. Read next: ../tune/folds.py."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5 % points of Student's t distribution with 1 to 9 degrees of freedom."""

NORMAL = 1.959964
"""The 97.5 % point of the normal distribution."""

SHARES = ("accuracy", "f1", "right", "unknown words")
"""Endings of the names of scores from 0 to 1."""


class MeanOfTrainings(NamedTuple):
    """A mean with the ends of its 95 % interval.

    repeats: number of trainings.
    """

    value: float
    low: float
    high: float
    repeats: int

    @property
    def known(self) -> bool:
        """Whether there is an interval: from 0 to 1, it says nothing of a share."""
        return self.repeats > 1 and (self.low, self.high) != (0.0, 1.0)

    def __str__(self) -> str:
        """For example: 0.881 [0.872, 0.89]."""
        if self.known:
            return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"
        few = f" ({self.repeats} trainings are too few for an interval)" if self.repeats > 1 else ""
        return f"{self.value:.4g}{few}"


def mean_of(scores: Sequence[float], *, overlap: float = 0.0, name: str = "") -> MeanOfTrainings:
    """The mean of the scores of several trainings and its 95 % interval.

    Args:
        scores: one per training; a single one has no interval.
        overlap: test examples per training example, if the trainings are folds of the same data. Their
            scores vary less than those of new data would, so the variance s²/n becomes s² (1/n + overlap).

        name: of the score; the interval of a share ends at 0 and 1.

    Source: Nadeau & Bengio 2003, "Inference for the Generalization Error", section 3, for `overlap`.

    Example:
        >>> str(mean_of([1.0, 2.0, 3.0]))
        '2 [-0.4843, 4.484]'
        >>> str(mean_of([0.5, 0.9], name="accuracy"))
        '0.7 (2 trainings are too few for an interval)'
    """
    value, count = statistics.fmean(scores), len(scores)
    if count == 1:
        return MeanOfTrainings(value, value, value, 1)
    half = quantile(count - 1) * statistics.stdev(scores) * math.sqrt(1 / count + overlap)
    low, high = value - half, value + half
    if name.lower().endswith(SHARES):
        low, high = max(0.0, low), min(1.0, high)
    return MeanOfTrainings(value, low, high, count)


def quantile(freedom: int) -> float:
    """The 97.5 % point of Student's t distribution, to three decimals.

    Source: Abramowitz & Stegun 1964, 26.7.5, for 10 degrees of freedom or more.
    """
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
