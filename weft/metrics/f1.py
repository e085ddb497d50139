"""F1 of each class and their mean, in which rare and frequent classes weigh the same; the confusion matrix.

    precision = tp / predicted,   recall = tp / there,   F1 = 2 tp / (predicted + there)

`there` counts the class in the references. Read next: scored.py, the interval.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, scored


def classes(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """All classes: those of the references by decreasing frequency, then the others by name.

    An empty hypothesis stands for an example without an answer, and is no class.
    """
    counts: dict[str, int] = {}
    for label in references:
        counts[label] = counts.get(label, 0) + 1
    found = sorted(counts, key=lambda label: (-counts[label], label))
    return found + sorted(set(hypotheses) - set(counts) - {""})


def confusion(hypotheses: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """Counts [C, C] int64 of reference class (row) against predicted class (column).

    Args:
        hypotheses, references: [N] class names; an empty hypothesis, no answer, is not counted.
        labels: [C] classes in the order of the rows and columns.

    Raises:
        DataError: the lists differ in length.

    Example:
        >>> confusion(["a", "b", "a"], ["a", "b", "b"], ["a", "b"]).tolist()
        [[1, 0], [1, 1]]
    """
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


def by_class(hypotheses: Sequence[str], references: Sequence[str]) -> list[ClassRow]:
    """One row per class, by decreasing frequency in the references.

    Example:
        >>> [row.f1 for row in by_class(["a", "a", "b"], ["a", "b", "b"])]
        [0.6666666666666666, 0.6666666666666666]
    """
    labels = classes(hypotheses, references)
    matrix, counts = confusion(hypotheses, references, labels), Counter(references)
    return [
        ClassRow.of(label, matrix[place, place], int(matrix[:, place].sum()), counts[label])
        for place, label in enumerate(labels)
    ]


def macro_f1(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    baselines: Mapping[str, Sequence[str]] | None = None,
    lengths: Sequence[int] | None = None,
) -> ScoreWithBaselines:
    """The mean F1 of all classes in the references or the predictions, with its 95 % interval.

    A class that is absent from a resample counts as 0 in it.

    Args:
        hypotheses, references: classes.
        baselines: the classes that each baseline predicts.
        lengths: how many of them follow each other in each sentence; resamples draw whole sentences.

    Raises:
        DataError: the lists differ in length or are empty.

    Example:
        >>> macro_f1(["a", "a", "b"], ["a", "b", "b"]).score.value
        0.6666666666666666
    """
    metric = _MacroF1(classes(hypotheses, references), lengths)
    found = scored(metric, hypotheses, references)
    values = {
        name: _MacroF1(classes(outputs, references)).score(outputs, references).value
        for name, outputs in (baselines or {}).items()
    }
    return found._replace(baselines=values)


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


class _MacroF1(Metric):
    """Private, not a metric by name, because its statistics depend on the classes."""

    name = "macro F1"

    def __init__(self, labels: Sequence[str], lengths: Sequence[int] | None = None) -> None:
        self.labels = list(labels)
        self.lengths = lengths

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
    ) -> np.ndarray:
        """[N, 2C]: for each class the right answers, then occurrences plus predictions."""
        number = {label: place for place, label in enumerate(self.labels)}
        lengths = [1] * len(references) if self.lengths is None else self.lengths
        rows = np.zeros((len(lengths), 2 * len(self.labels)))
        items = np.repeat(np.arange(len(lengths)), lengths)
        for item, ours, theirs in zip(items, hypotheses, references, strict=True):
            row = rows[item]
            if ours or ours in number:
                row[number[ours]] += ours == theirs
                row[len(self.labels) + number[ours]] += 1
            row[len(self.labels) + number[theirs]] += 1
        return rows

    def rows(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """One row for each sequence, whose `lengths` say how many lines it has."""
        return self.statistics(hypotheses, references, sources)

    def value(self, totals: np.ndarray) -> np.ndarray:
        right, counted = np.split(totals, 2, axis=-1)
        f1: np.ndarray = 2 * right / np.maximum(counted, 1)
        return f1.mean(-1)  # type: ignore[no-any-return]

    def signature(self) -> str:
        return f"mean over:{len(self.labels)} classes"
