"""F1 where an answer is a set of labels: over all labels together (micro), or their mean (macro).

    micro F1 = 2 Σ_c tp_c / Σ_c (predicted_c + there_c)
    macro F1 = mean over c of 2 tp_c / (predicted_c + there_c)

Read next: f1.py, for one label each; scored.py, the interval.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from weft.metrics.f1 import ClassRow
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, scored
from weft.shapes import check_choice

Mean = Literal["micro", "macro"]


def label_f1(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    separator: str,
    labels: Sequence[str],
    mean: Mean,
    baselines: Mapping[str, Sequence[str]] | None = None,
) -> ScoreWithBaselines:
    """Micro or macro F1 of sets of labels, with its 95 % interval.

    Args:
        hypotheses, references: the labels of each text, joined by the separator; "" for none.
        separator: between labels.
        labels: C labels to score; others are left out.
        mean: micro or macro.
        baselines: the answers of each baseline.

    Raises:
        DataError: the lists differ in length or are empty.

    Example:
        >>> label_f1(["a", "a|b"], ["a|b", "b"], separator="|", labels=["a", "b"], mean="micro").value
        0.6666666666666666
    """
    check_choice("mean", mean, Mean)
    return scored(_LabelF1(separator, labels, mean), hypotheses, references, baselines=baselines)


def by_label(
    hypotheses: Sequence[str], references: Sequence[str], *, separator: str, labels: Sequence[str]
) -> list[ClassRow]:
    """Precision, recall and F1 of each label, in the given order.

    Example:
        >>> [row.f1 for row in by_label(["a", "a|b"], ["a|b", "b"], separator="|", labels=["a", "b"])]
        [0.6666666666666666, 0.6666666666666666]
    """
    metric = _LabelF1(separator, labels, "macro")
    counts = metric.statistics(hypotheses, references, None).sum(0).reshape(3, -1).T.tolist()  # [C, 3]
    return [ClassRow.of(label, *each) for label, each in zip(labels, counts, strict=True)]


class _LabelF1(Metric):
    """Private, not a metric by name, because its statistics depend on the labels."""

    def __init__(self, separator: str, labels: Sequence[str], mean: Mean) -> None:
        self.name = f"{mean} F1"  # type: ignore[misc]
        self.separator, self.labels, self.mean = separator, list(labels), mean

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
    ) -> np.ndarray:
        """[N, 3C]: for each label the right answers, the predictions and the occurrences."""
        ours, theirs = self._sets(hypotheses), self._sets(references)
        return np.concatenate([ours * theirs, ours, theirs], -1)

    def value(self, totals: np.ndarray) -> np.ndarray:
        right, predicted, there = np.split(totals, 3, axis=-1)
        if self.mean == "micro":
            right, predicted, there = (one.sum(-1, keepdims=True) for one in (right, predicted, there))
        f1: np.ndarray = 2 * right / np.maximum(predicted + there, 1)
        return f1.mean(-1)  # type: ignore[no-any-return]

    def signature(self) -> str:
        return f"{self.mean} over:{len(self.labels)} labels"

    def _sets(self, lines: Sequence[str]) -> np.ndarray:
        """[N, C] 1 where a line has the label."""
        number = {label: place for place, label in enumerate(self.labels)}
        found = np.zeros((len(lines), len(self.labels)))
        for row, line in zip(found, lines, strict=True):
            row[[number[name] for name in set(line.split(self.separator)) if name in number]] = 1.0
        return found
