"""F1 of each class and their mean, in which rare and frequent classes weigh the same.

    precision = tp / predicted,   recall = tp / there,   F1 = 2 tp / (predicted + there)

`there` counts the class in the references. Read next: confusion.py, the counts; scored.py, the interval.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.confusion import classes, confusion
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, scored


class ClassRow(NamedTuple):
    """Precision, recall and F1 of one class."""

    label: str
    precision: float
    recall: float
    f1: float
    there: int  # in the references
    predicted: int


def by_class(hypotheses: Sequence[str], references: Sequence[str]) -> list[ClassRow]:
    """One row per class, by decreasing frequency in the references.

    Example:
        >>> [row.f1 for row in by_class(["a", "a", "b"], ["a", "b", "b"])]
        [0.6666666666666666, 0.6666666666666666]
    """
    labels = classes(hypotheses, references)
    matrix, counts = confusion(hypotheses, references, labels), Counter(references)
    rows = []
    for place, label in enumerate(labels):
        right, there, predicted = matrix[place, place], counts[label], matrix[:, place].sum()
        rows.append(
            ClassRow(
                label,
                float(right / max(1, predicted)),
                float(right / max(1, there)),
                float(2 * right / max(1, there + predicted)),
                int(there),
                int(predicted),
            )
        )
    return rows


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
