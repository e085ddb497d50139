"""Calibration of a classifier: 80 % of the answers with probability 0.8 should be right.

The temperature of its softmax, one number, makes its probabilities honest; advice about thresholds says how
many answers are left if unsure ones are not given, and where F1 is highest. Read next: f1.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Calibration(NamedTuple):
    """Confidence of a classifier compared with its accuracy."""

    confidence: float  # mean probability of its answers
    error: float  # expected calibration error: the mean gap between confidence and accuracy, by bins
    bins: list[tuple[float, float, int]]  # mean probability, accuracy, number of answers


BINS = 10


def calibration(probs: np.ndarray, right: np.ndarray) -> Calibration:
    """ECE = sum_b (n_b / n) |accuracy_b - confidence_b| over bins of equal width; Guo et al. 2017, eq. 3."""
    rows = binned(probs[:, None], right[:, None]).sum(0).reshape(3, BINS).T.tolist()
    bins = [(sure / count, hits / count, int(count)) for count, sure, hits in rows if count]
    error = sum(abs(sure - hits) for _, sure, hits in rows) / max(1, len(probs))
    return Calibration(float(probs.mean()), float(error), bins)


def binned(sure: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[N, 3 x BINS] of answers [N, M]: how many, their confidence, the right ones, by bins of confidence."""
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    inside = place[..., None] == np.arange(BINS)  # [N, M, BINS]
    parts = [(inside * one[..., None]).sum(1) for one in (np.ones(sure.shape), sure, right)]
    return np.concatenate(parts, 1)


COLDEST, HOTTEST = 0.25, 20.0
"""The ends of the search: a few texts that are all right would ask for certainty."""

STEPS = 60  # bisections, which end below the precision of float64


def fitted(logp: np.ndarray, targets: np.ndarray) -> float:
    """The temperature T for which softmax(logp [N, C] / T) gives the targets [N] the highest probability.

    The derivative of the loss by b = 1 / T is sum_n (E_b[logp_n] - logp_n[target]), which grows with b, so
    its zero is found by bisection.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2.
    """
    logp = logp.astype(np.float64)
    low, high = np.log(1 / HOTTEST), np.log(1 / COLDEST)
    own = logp[np.arange(len(logp)), targets].sum()
    for _ in range(STEPS):
        middle = (low + high) / 2
        probs = heated(logp, np.exp(-middle))
        if (probs * np.where(probs > 0, logp, 0.0)).sum() > own:
            high = middle
        else:
            low = middle
    return float(np.exp(-(low + high) / 2))


def heated(logp: np.ndarray, temperature: float) -> np.ndarray:
    """softmax(logp / T): probabilities [N, C] in float64."""
    scaled = logp.astype(np.float64) / temperature
    raised = np.exp(scaled - scaled.max(-1, keepdims=True))
    probs: np.ndarray = raised / raised.sum(-1, keepdims=True)
    return probs


CONFIDENCES = (0.5, 0.7, 0.9, 0.95, 0.99)


class ThresholdAnswers(NamedTuple):
    """The answers with at least some probability."""

    least: float  # probability
    share: float  # of all answers
    accuracy: float  # of those; NaN if there are none


def kept(
    probs: np.ndarray, right: np.ndarray, confidences: Sequence[float] = CONFIDENCES
) -> list[ThresholdAnswers]:
    """The share of answers [N] that are at least so probable, and how many of them are right."""
    rows = []
    for least in confidences:
        chosen = probs >= least
        accuracy = float(right[chosen].mean()) if chosen.any() else float("nan")
        rows.append(ThresholdAnswers(least, float(chosen.mean()) if len(probs) else 0.0, accuracy))
    return rows


def best_threshold(probs: np.ndarray, true: np.ndarray) -> float:
    """The threshold with the highest F1 of one class: answer it where its probability [N] is at least that.

    F1 changes only where a threshold passes a probability. The value is the middle between the last
    probability that is answered and the next one; ties go to the higher value. On the examples that chose it,
    the F1 is an upper bound: score it on others. At least one item is of the class.
    """
    order = np.argsort(-probs, kind="stable")
    hits = np.cumsum(true[order])
    f1 = 2 * hits / (np.arange(1, len(probs) + 1) + true.sum())
    last = np.append(probs[order][1:] != probs[order][:-1], True)  # equal ones are answered together
    place = int(np.argmax(np.where(last, f1, -1.0)))
    least = probs[order][place]
    middle = (least + probs[order][min(place + 1, len(probs) - 1)]) / 2
    alone = (probs >= middle).sum() == place + 1  # two numbers may have none between them
    return float(middle if alone else least)


def f1_from(probs: np.ndarray, true: np.ndarray, least: float) -> float:
    """F1 = 2 TP / (answered + true) of a class that is answered where its probability is at least `least`."""
    answered = probs >= least
    return float(2 * (answered & true).sum() / max(1, answered.sum() + true.sum()))
