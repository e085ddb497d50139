"""Scores of classes beside accuracy and F1: Matthews' correlation, balanced accuracy.

An item is a class, a list of classes (the tags of a sentence, compared place by place), or a set.
Read next: f1.py, which has its own file; probabilities.py, scores of how sure a classifier is.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from weft.errors import DataError
from weft.metrics.metric import Metric

Label = str | Sequence[str] | frozenset[str]
"""A class, the classes of a sequence or a set of them; "" is no answer."""


class LabelMetric(Metric):
    """A score of classes; statistics [N, 3C] are right answers, answers and occurrences of each class."""

    reads = ("labels",)
    classes: Sequence[str] = ()

    def fitted(self, references: Sequence[Label], *outputs: Sequence[Label]) -> Self:
        """A copy that knows the classes: those of the references by frequency, then others by name."""
        found = copy(self)
        found.classes = classes_of(references, *outputs)
        return found

    def statistics(
        self, hypotheses: Sequence[Label], references: Sequence[Label], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        known = self.classes or classes_of(references, hypotheses)
        number = {label: place for place, label in enumerate(known)}
        found = np.zeros((len(references), 3, len(known)))
        for row, ours, theirs in zip(found, hypotheses, references, strict=True):
            right, answered, there = _compared(ours, theirs)
            for counts, labels in zip(row, (right, answered, there), strict=True):
                for label in labels:
                    if label in number:
                        counts[number[label]] += 1
        return found.reshape(len(references), -1)

    def value(self, totals: np.ndarray) -> np.ndarray:
        right, answered, there = np.split(totals, 3, axis=-1)
        return self.of_counts(right, answered, there)

    @abstractmethod
    def of_counts(self, right: np.ndarray, answered: np.ndarray, there: np.ndarray) -> np.ndarray:
        """The value [...] of the counts [..., C] of each class."""


class Mcc(LabelMetric):
    """Matthews' correlation of answers and references, -1..1; 0 for answers that know nothing.

    R = (c s - Σ_k p_k t_k) / sqrt((s² - Σ_k p_k²) (s² - Σ_k t_k²)), with c right answers of s, and p_k
    answers and t_k occurrences of class k.

    Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient".

    Example:
        >>> Mcc()(["a", "a", "b"], ["a", "b", "b"]).value
        0.5
    """

    name = "MCC"

    def of_counts(self, right: np.ndarray, answered: np.ndarray, there: np.ndarray) -> np.ndarray:
        size = np.maximum(there.sum(-1), answered.sum(-1))
        above = right.sum(-1) * size - (answered * there).sum(-1)
        below = (size**2 - (answered**2).sum(-1)) * (size**2 - (there**2).sum(-1))
        found: np.ndarray = np.where(below > 0, above / np.sqrt(np.maximum(below, 1e-300)), 0.0)
        return found

    def signature(self) -> str:
        return "unit:label|case:mixed"


class BalancedAccuracy(LabelMetric):
    """The mean over classes of the share of their items that are right, 0..1.

    Classes that no reference has are left out.

    Source: Brodersen et al. 2010, "The balanced accuracy and its posterior distribution".

    Example:
        >>> BalancedAccuracy()(["a", "a", "a", "b"], ["a", "a", "a", "c"]).value
        0.5
    """

    name = "balanced accuracy"

    def of_counts(self, right: np.ndarray, answered: np.ndarray, there: np.ndarray) -> np.ndarray:
        known = there > 0
        found: np.ndarray = (right / np.maximum(there, 1)).sum(-1) / np.maximum(known.sum(-1), 1)
        return found

    def signature(self) -> str:
        return "unit:label|case:mixed|mean over:classes of the references"


def classes_of(references: Iterable[Label], *outputs: Iterable[Label]) -> list[str]:
    """All classes: those of the references by decreasing frequency, then those of the outputs by name."""
    counts = Counter(label for item in references for label in _listed(item))
    found = sorted(counts, key=lambda label: (-counts[label], label))
    others = {label for items in outputs for item in items for label in _listed(item)}
    return found + sorted(others - set(counts) - {""})


def check_alike(ours: Any, theirs: Any) -> None:
    """Check that an answer is a class if its reference is, and several if that has several."""
    if ours and isinstance(ours, str) != isinstance(theirs, str):
        raise DataError(f"labels: expected answers like their references, such as {theirs!r}, got {ours!r}")


def _listed(item: Label) -> Iterable[str]:
    return (item,) if isinstance(item, str) else item


def _compared(ours: Any, theirs: Any) -> tuple[Iterable[str], Iterable[str], Iterable[str]]:
    """The right classes, the answered ones and those of the reference."""
    check_alike(ours, theirs)
    if isinstance(theirs, str):
        return ((ours,) if ours == theirs else ()), ((ours,) if ours else ()), (theirs,)
    if isinstance(theirs, set | frozenset):
        return set(ours) & theirs, set(ours), theirs
    right = [one for one, other in zip(ours, theirs, strict=False) if one == other]
    return right, [one for one in ours if one], theirs
