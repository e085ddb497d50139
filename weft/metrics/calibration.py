"""Does a classifier know what it knows? Of the answers given with 80 %, eight in ten should be right."""

from typing import NamedTuple

import numpy as np


class Calibration(NamedTuple):
    """How sure a classifier is, and how sure it may be."""

    confidence: float  # the mean probability of its answers
    error: float  # expected calibration error: the mean gap between confidence and accuracy, by bins
    bins: list[tuple[float, float, int]]  # mean probability, share of right answers, answers


def calibration(probs: np.ndarray, right: np.ndarray, bins: int = 10) -> Calibration:
    """ECE = sum_b (n_b / n) |accuracy_b - confidence_b| over bins of equal width.

    Args:
        probs: [N] of the answers.
        right: [N] bool.
        bins: of [0, 1].

    Source: Guo et al. 2017, eq. 3.

    Example:
        >>> calibration(np.array([0.9, 0.9]), np.array([True, False])).error
        0.4
    """
    place = np.minimum((probs * bins).astype(int), bins - 1)
    rows = []
    for number in range(bins):
        here = place == number
        if here.any():
            rows.append((float(probs[here].mean()), float(right[here].mean()), int(here.sum())))
    error = sum(count * abs(sure - share) for sure, share, count in rows) / max(1, len(probs))
    return Calibration(float(probs.mean()), float(error), rows)
