"""Calibration of a classifier: 80 % of the answers with probability 0.8 should be right."""

from typing import NamedTuple

import numpy as np


class Calibration(NamedTuple):
    """Confidence of a classifier compared with its accuracy."""

    confidence: float  # mean probability of its answers
    error: float  # expected calibration error: the mean gap between confidence and accuracy, by bins
    bins: list[tuple[float, float, int]]  # mean probability, accuracy, number of answers


def calibration(probs: np.ndarray, right: np.ndarray, bins: int = 10) -> Calibration:
    """ECE = sum_b (n_b / n) |accuracy_b - confidence_b| over bins of equal width.

    Args:
        probs: [N] probability of each answer.
        right: [N] bool, True if the answer is right.
        bins: number of bins of [0, 1].

    Source: Guo et al. 2017, eq. 3.

    Example:
        >>> calibration(np.array([0.9, 0.9]), np.array([True, False])).error
        0.4
    """
    place = np.minimum((probs * bins).astype(int), bins - 1)
    rows = []
    for number in range(bins):
        in_bin = place == number
        if in_bin.any():
            rows.append((float(probs[in_bin].mean()), float(right[in_bin].mean()), int(in_bin.sum())))
    error = sum(count * abs(sure - share) for sure, share, count in rows) / max(1, len(probs))
    return Calibration(float(probs.mean()), float(error), rows)
