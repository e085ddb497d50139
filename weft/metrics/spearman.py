"""Spearman's rank correlation: 1 if two lists have the same order, -1 if the reverse."""

import numpy as np


def ranks(values: np.ndarray) -> np.ndarray:
    """[N] ranks from 1; equal values share their mean rank.

    Example:
        >>> ranks(np.array([7.0, 3.0, 7.0])).tolist()
        [2.5, 1.0, 2.5]
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return (ends - (counts - 1) / 2)[which]  # type: ignore[no-any-return]


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """The correlation of the ranks; 0 if all values of a list are equal.

    Example:
        >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])), 6)
        0.5
    """
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    length = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / length if length else 0.0
