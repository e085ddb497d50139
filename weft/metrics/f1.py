"""F1 of each class, and over classes: macro, micro, weighted; the confusion matrix.

    precision = tp / predicted,   recall = tp / there,   F1 = 2 tp / (predicted + there)

`there` counts the class in the references. Read next: labels.py, other scores of classes.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, get_args

import numpy as np

from weft.errors import ConfigError, DataError
from weft.metrics.labels import Label, LabelMetric
from weft.metrics.metric import check_items

Average = Literal["macro", "micro", "weighted"]


class F1(LabelMetric):
    """F1 over classes, 0..1.

    macro: the mean over the classes of the references or the answers, in which rare and frequent ones weigh
    the same; weighted: by their number in the references; micro: all answers together, which for one class
    each is the accuracy.

    Args:
        average: macro, micro or weighted.
        labels: classes to score, all of which count; by default those that occur.

    Raises:
        ConfigError: an unknown average.

    Example:
        >>> F1()(["a", "a", "b"], ["a", "b", "b"]).value
        0.6666666666666666
        >>> F1(average="micro")([{"a"}, {"a", "b"}], [{"a", "b"}, {"b"}]).value
        0.6666666666666666
    """

    name = "F1"
    perfect = 1.0

    def __init__(self, *, average: Average = "macro", labels: Sequence[str] | None = None) -> None:
        if average not in get_args(Average):
            raise ConfigError(f"f1: average: expected one of {', '.join(get_args(Average))}, got {average!r}")
        self.name = f"{average} F1"  # type: ignore[misc]
        self.average, self.labels = average, labels

    def fitted(self, references: Sequence[Label], *outputs: Sequence[Label]) -> Self:
        found = super().fitted(references, *outputs)
        found.classes = self.labels or found.classes
        return found

    def of_counts(self, right: np.ndarray, answered: np.ndarray, there: np.ndarray) -> np.ndarray:
        if self.average == "micro":
            right, answered, there = (one.sum(-1, keepdims=True) for one in (right, answered, there))
        f1 = 2 * right / np.maximum(answered + there, 1)
        weight = there if self.average == "weighted" else (answered + there > 0) | bool(self.labels)
        found: np.ndarray = (f1 * weight).sum(-1) / np.maximum(weight.sum(-1), 1)
        return found

    def signature(self) -> str:
        over = f"{len(self.labels)} labels" if self.labels else "classes that occur"
        return f"average:{self.average}|over:{over}"


def confusion(hypotheses: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """Counts [C, C] int64 of reference class (row) by predicted class (column); no answer is left out."""
    if len(hypotheses) != len(references):
        raise DataError(
            "confusion: expected as many answers as references, "
            f"got {len(hypotheses):,} and {len(references):,}"
        )
    number = {label: place for place, label in enumerate(labels)}
    matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for ours, theirs in zip(hypotheses, references, strict=True):
        if ours or ours in number:
            matrix[number[theirs], number[ours]] += 1
    return matrix


class ClassRow(NamedTuple):
    """Precision, recall and F1 of one class."""

    label: str
    precision: float
    recall: float
    f1: float
    there: int  # in the references
    predicted: int

    @classmethod
    def of(cls, label: str, right: float, predicted: float, there: float) -> "ClassRow":
        """The row of a class from its counts: right answers, predictions, occurrences in the references."""
        right = float(right)
        f1 = 2 * right / max(1, predicted + there)
        return cls(label, right / max(1, predicted), right / max(1, there), f1, int(there), int(predicted))


def by_class(
    hypotheses: Sequence[Label], references: Sequence[Label], labels: Sequence[str] | None = None
) -> list[ClassRow]:
    """One row per class, by decreasing frequency in the references, or in the order of `labels`.

    Example:
        >>> [row.f1 for row in by_class(["a", "a", "b"], ["a", "b", "b"])]
        [0.6666666666666666, 0.6666666666666666]
    """
    check_items(hypotheses, references, reads=("labels",))
    metric = F1(labels=labels).fitted(references, hypotheses)
    counts = metric.statistics(hypotheses, references).sum(0).reshape(3, -1).T.tolist()  # [C, 3]
    return [
        ClassRow.of(label, right, answered, there)
        for label, (right, answered, there) in zip(metric.classes, counts, strict=True)
    ]


def table(rows: Sequence[ClassRow], title: str = "class") -> str:
    """A plain-text table with one class per line."""
    wide = max([len(title), *(len(row.label) for row in rows)])
    lines = [f"{title:<{wide}}  precision  recall     F1  actual  predicted"]
    for row in rows:
        lines.append(
            f"{row.label:<{wide}}     {row.precision:6.3f}  {row.recall:6.3f}  {row.f1:5.3f}  {row.there:6,}"
            f"  {row.predicted:9,}"
        )
    return "\n".join(lines)
