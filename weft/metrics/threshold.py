"""Advice about thresholds: how many answers are left if unsure ones are not given, and where F1 is highest.

Read next: calibration.py; f1.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CONFIDENCES = (0.5, 0.7, 0.9, 0.95, 0.99)


class ThresholdAnswers(NamedTuple):
    """The answers with at least some probability."""

    least: float  # probability
    share: float  # of all answers
    accuracy: float  # of those; NaN if there are none


def kept(
    probs: np.ndarray, right: np.ndarray, confidences: Sequence[float] = CONFIDENCES
) -> list[ThresholdAnswers]:
    """The share of answers that are at least so probable, and how many of them are right.

    Args:
        probs: [N] probability of each answer.
        right: [N] bool.
        confidences: the least probabilities.

    Example:
        >>> kept(np.array([0.6, 0.8, 0.9]), np.array([False, True, True]), [0.7])
        [ThresholdAnswers(least=0.7, share=0.6666666666666666, accuracy=1.0)]
    """
    rows = []
    for least in confidences:
        chosen = probs >= least
        accuracy = float(right[chosen].mean()) if chosen.any() else float("nan")
        rows.append(ThresholdAnswers(least, float(chosen.mean()) if len(probs) else 0.0, accuracy))
    return rows


class Threshold(NamedTuple):
    """From which probability on a class should be answered."""

    value: float
    f1: float
    usual: float  # F1 at 0.5


def best_f1(probs: np.ndarray, true: np.ndarray) -> Threshold:
    """The threshold with the highest F1 of one class: answer it where its probability is at least that.

    F1 = 2 TP / (answered + true), which changes only where a threshold passes a probability. The value is the
    middle between the last probability that is answered and the next one; ties go to the higher value.

    Args:
        probs: [N] probability of the class.
        true: [N] bool, whether it is the right class; at least one is.

    Example:
        >>> best_f1(np.array([0.9, 0.4, 0.3, 0.1]), np.array([True, True, False, False]))
        Threshold(value=0.35, f1=1.0, usual=0.6666666666666666)
    """
    order = np.argsort(-probs, kind="stable")
    hits = np.cumsum(true[order])
    f1 = 2 * hits / (np.arange(1, len(probs) + 1) + true.sum())
    last = np.append(probs[order][1:] != probs[order][:-1], True)  # equal ones are answered together
    place = int(np.argmax(np.where(last, f1, -1.0)))
    answered = probs >= 0.5
    usual = 2 * (answered & true).sum() / max(1, answered.sum() + true.sum())
    least = probs[order][place]
    middle = (least + probs[order][min(place + 1, len(probs) - 1)]) / 2
    value = (
        middle if (probs >= middle).sum() == place + 1 else least
    )  # two numbers may have none between them
    return Threshold(float(value), float(f1[place]), float(usual))
