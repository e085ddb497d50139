"""Scores of how sure a classifier is: ROC area, average precision, Brier score, calibration error.

Outputs are probabilities [N, C]; references class numbers [N], or [N, C] bool where an item may have several.
With two classes, outputs may be [N] probabilities of class 1, whose order is then scored, as in scikit-learn.
Read next: calibration.py, what makes probabilities honest.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from weft.errors import DataError
from weft.metrics.calibration import BINS, binned
from weft.metrics.metric import ROUNDING, Metric, MetricScore
from weft.metrics.numbers import quotient


class ProbabilityMetric(Metric):
    """A score of probabilities."""

    reads = ("probabilities",)
    of_order: ClassVar[bool] = False
    """Whether the outputs may be any scores, as only their order counts."""

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        probs, true = arrays_of(hypotheses, references)
        if not self.of_order and (probs.min() < -1e-6 or probs.max() > 1 + 1e-6):
            raise DataError(
                f"{self.key}: expected probabilities from 0 to 1, got {probs.min():g} to {probs.max():g}"
            )
        if self.of_order and np.ndim(hypotheses) == 1:  # of class 1
            probs, true = probs[:, 1:], true[:, 1:]
        return self.of_arrays(probs, true, single=np.ndim(references) == 1)

    @abstractmethod
    def of_arrays(self, probs: np.ndarray, true: np.ndarray, *, single: bool) -> np.ndarray:
        """[N, K] of probabilities [N, C] and what is true, [N, C] bool; `single`: each item has one class."""


class Brier(ProbabilityMetric):
    """Mean squared error of the probabilities: Σ_c (p_c - y_c)², halved for two classes; 0 is best.

    Where an item may have several labels, the mean over labels.

    Source: Brier 1950; halved for two classes as in scikit-learn.

    Example:
        >>> round(Brier()([[0.8, 0.2], [0.4, 0.6]], [0, 1]).value, 6)
        0.1
    """

    name, higher_is_better = "Brier score", False

    def of_arrays(self, probs: np.ndarray, true: np.ndarray, *, single: bool) -> np.ndarray:
        wrong = np.square(probs - true).sum(1)
        if not single or probs.shape[1] == 2:
            wrong = wrong / probs.shape[1]
        return np.stack([wrong, np.ones(len(wrong))], 1)

    def signature(self) -> str:
        return "sum over:classes|two classes or several labels:mean"


class Ece(ProbabilityMetric):
    """Expected calibration error: Σ_b n_b/n |accuracy_b - confidence_b| over 10 equal bins; 0 is best.

    The confidence of an item is that of its most probable class; where an item may have several labels, that
    each is there or is not. The error of a finite set is above 0 even for perfect probabilities.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", eq. 3.

    Example:
        >>> Ece()([[0.9, 0.1], [0.9, 0.1]], [0, 1]).value
        0.4
    """

    name, higher_is_better = "calibration error", False

    def of_arrays(self, probs: np.ndarray, true: np.ndarray, *, single: bool) -> np.ndarray:
        """[N, 3 x bins]: items, confidence and right answers in each bin."""
        if single:
            best = probs.argmax(1)[:, None]
            sure, right = np.take_along_axis(probs, best, 1), np.take_along_axis(true, best, 1)
        else:
            sure, right = np.maximum(probs, 1 - probs), (probs >= 0.5) == true
        return binned(sure, right)

    def value(self, totals: np.ndarray) -> np.ndarray:
        count, sure, right = np.split(totals, 3, axis=-1)
        found: np.ndarray = np.abs(right - sure).sum(-1) / np.maximum(count.sum(-1), 1)
        return np.where(found < ROUNDING, 0.0, found)

    def signature(self) -> str:
        return f"bins:{BINS}|of:most probable class"


class RankMetric(ProbabilityMetric):
    """A score of the order of probabilities, the mean over classes that some items have and some have not.

    It does not sum over items. Its statistics are pseudo-values (the infinitesimal jackknife): the score plus
    N times its derivative by the weight of an item. Their mean is the score; each row is its part of the
    mean, because a count of 1 would say that items are right or wrong.

    Source: Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans", section 6.3.
    """

    of_order = True

    def of_arrays(self, probs: np.ndarray, true: np.ndarray, *, single: bool) -> np.ndarray:
        columns = [place for place in range(probs.shape[1]) if 0 < true[:, place].sum() < len(true)]
        if single and probs.shape[1] == 2:  # the rarer class, class 1 of two that are as frequent
            columns = columns and [int(2 * true[:, 1].sum() <= len(true))]
        if not columns:
            return np.full((len(true), 2), [np.nan, 1.0])
        values = [self.pseudo_values(probs[:, place], true[:, place]) for place in columns]
        return np.stack([np.mean(values, 0), np.ones(len(true))], 1) / len(true)

    @abstractmethod
    def pseudo_values(self, score: np.ndarray, true: np.ndarray) -> np.ndarray:
        """[N] of one class: its score [N], and whether it is the right one [N] bool."""

    def signature(self) -> str:
        return "mean over:classes|two classes:the rarer one|one column:class 1"


class Auroc(RankMetric):
    """Area under the ROC curve, 0..1: the probability that an item of a class scores above one that is not.

    Ties count half. One class against all others, and the mean over classes.

    Source: Hanley & McNeil 1982; DeLong, DeLong & Clarke-Pearson 1988 for the variance that the interval has.

    Example:
        >>> Auroc()([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).value
        0.75
    """

    name = "AUROC"

    def pseudo_values(self, score: np.ndarray, true: np.ndarray) -> np.ndarray:
        above, below = np.sort(score[true]), np.sort(score[~true])
        found = np.empty(len(score))

        def share(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
            """Of the ordered scores below each value; ties count half."""
            sides = [np.searchsorted(ordered, values, side) for side in ("left", "right")]  # type: ignore[call-overload]
            return np.mean(sides, 0) / len(ordered)  # type: ignore[no-any-return]

        found[true] = share(below, score[true])
        found[~true] = 1 - share(above, score[~true])
        area = found[true].mean()
        size = np.where(true, len(above), len(below))
        pseudo: np.ndarray = area + len(score) * (found - area) / size
        return pseudo


class AveragePrecision(RankMetric):
    """Σ_n (R_n - R_(n-1)) P_n over the thresholds of a class, the mean over classes, 0..1.

    The share of a class is what random scores get.

    Source: Zhu 2004, "Recall, Precision and Average Precision"; as in scikit-learn, without interpolation.

    Example:
        >>> round(AveragePrecision()([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).value, 4)
        0.8333
    """

    name = "average precision"

    def pseudo_values(self, score: np.ndarray, true: np.ndarray) -> np.ndarray:
        order = np.argsort(-score, kind="stable")
        ordered, right = score[order], true[order].astype(float)
        last = np.searchsorted(-ordered, -ordered, "right") - 1  # of the items with the same score
        counted = (last + 1).astype(float)
        precision = right.cumsum()[last] / counted
        total = right.sum()
        value = float(precision @ right / total)
        # d AP / d w_j = y_j (P_j - AP) / n + (1 / n) Σ_{i true, s_i <= s_j} (y_j - P_i) / B_i
        first = np.searchsorted(-ordered, -ordered, "left")
        shares = np.append(np.cumsum((right / counted)[::-1])[::-1], 0.0)[first]
        losses = np.append(np.cumsum((right * precision / counted)[::-1])[::-1], 0.0)[first]
        moved = (right * (precision - value) + right * shares - losses) / total
        found = np.empty(len(score))
        found[order] = value + len(score) * moved
        return found


def arrays_of(outputs: Any, references: Any) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [N, C] and what is true, [N, C] bool."""
    try:
        probs, true = np.asarray(outputs, np.float64), np.asarray(references)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"probabilities: expected rows of as many numbers each, got {error}") from None
    if probs.ndim == 1:
        probs = np.stack([1 - probs, probs], 1)
    whole = true.dtype.kind in "iub" or (true.dtype.kind == "f" and (true == np.floor(true)).all())
    if true.ndim == 1 and whole and probs.ndim == 2:
        true, size = true.astype(int), probs.shape[1]
        if true.min(initial=0) < 0 or true.max(initial=0) >= size:
            raise DataError(
                f"probabilities: expected class numbers below {size}, got {true.min()} to {true.max()}"
            )
        true = np.eye(size, dtype=bool)[true]
    if probs.ndim != 2 or true.shape != probs.shape:
        raise DataError(
            "probabilities: expected outputs [N, C] and class numbers [N] or 0 and 1 [N, C] as references, "
            f"got shapes {list(probs.shape)} and {list(true.shape)}"
        )
    if not np.isfinite(probs).all():
        place = int(np.flatnonzero(~np.isfinite(probs).all(1))[0])
        raise DataError(f"probabilities: expected finite numbers, got {probs[place].tolist()} at {place}")
    return probs, true.astype(bool)


class NatsMetric(Metric):
    """A score of the nats that texts cost."""

    reads = ("nats",)
    higher_is_better = False

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        """[N, 2]: nats and tokens."""
        return np.stack([np.asarray(one, np.float64) for one in (hypotheses, references)], 1)

    def summary(self, statistics: np.ndarray) -> MetricScore:
        """The size is the number of tokens."""
        return super().summary(statistics)._replace(size=int(statistics[:, 1].sum()))

    @abstractmethod
    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""

    def signature(self) -> str:
        return "unit:token"


class Perplexity(NatsMetric):
    """e to the mean nats of a token.

    Example:
        >>> round(Perplexity()([0.6931, 1.3863], [1, 2]).value, 3)
        2.0
    """

    name = "perplexity"

    def value(self, totals: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(quotient(totals[..., 0], totals[..., 1]), 700.0))  # type: ignore[no-any-return]


class Bits(NatsMetric):
    """Mean bits of a token: nats / ln 2.

    Example:
        >>> round(Bits()([0.6931, 1.3863], [1, 2]).value, 3)
        1.0
    """

    name = "bits a token"

    def value(self, totals: np.ndarray) -> np.ndarray:
        return quotient(totals[..., 0], totals[..., 1]) / np.log(2)  # type: ignore[no-any-return]
