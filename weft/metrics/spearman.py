"""Spearman's rank correlation: 1 if two lists have the same order, -1 if the reverse."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.metrics.numbers import ForecastWindows, NumberMetric


class Spearman(NumberMetric):
    """100 times the correlation of the ranks, -100..100; 0 if all values of a list are equal.

    The statistics are pseudo-values, the score plus N times its derivative by the weight of a value: their
    mean is the score (the infinitesimal jackknife).

    Source: Spearman 1904; Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans", section 6.3.

    Example:
        >>> round(Spearman()([1.0, 2.0, 3.0], [10.0, 30.0, 20.0]).value, 6)
        50.0
    """

    name, higher_is_better = "Spearman x 100", True

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        """[N, 2] each item's part of the mean: a count of 1 would say that items are right or wrong."""
        rows = super().statistics(hypotheses, references)
        return rows / max(1.0, rows[:, 1].sum())

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        known = np.isfinite(true)
        values = np.zeros(true.shape)
        values[known] = _pseudo_values(found.best[known], true[known])
        return [values]

    def value(self, totals: np.ndarray) -> np.ndarray:
        return 100 * np.clip(super().value(totals), -1, 1)  # type: ignore[no-any-return]

    def signature(self) -> str:
        return "ties:mean rank"


def ranks(values: np.ndarray) -> np.ndarray:
    """[N] ranks from 1; equal values share their mean rank."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return (ends - (counts - 1) / 2)[which]  # type: ignore[no-any-return]


def _pseudo_values(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[N] whose mean is the correlation; a weight moves its own term, and the ranks of all others."""
    if np.isnan(first).any():  # what is no number has no rank
        return np.full(len(first), np.nan)
    a, b = (ranks(values) - (len(values) + 1) / 2 for values in (first, second))
    length = float(np.sqrt((a @ a) * (b @ b)))
    if not length:
        return np.zeros(len(first))
    together = a * b + _above(first, b) + _above(second, a)
    alone = [(one**2 + 2 * _above(values, one)) / (one @ one) for values, one in ((first, a), (second, b))]
    value = float(a @ b) / length
    found: np.ndarray = value + len(first) * (together / length - value / 2 * (alone[0] + alone[1]))
    return found


def _above(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[N] half the weights of larger values less half those of smaller ones."""
    order = np.argsort(values)
    sums = np.append(0.0, weights[order].cumsum())
    first, last = (np.searchsorted(values[order], values, side) for side in ("left", "right"))  # type: ignore[call-overload]
    return (sums[-1] - sums[last] - sums[first]) / 2  # type: ignore[no-any-return]
