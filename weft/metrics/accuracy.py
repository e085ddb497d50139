"""Accuracy: the share of lines, classes or sets that are exactly right. Read next: labels.py, tags.py."""

from collections.abc import Sequence

import numpy as np

from weft.metrics.labels import Label, check_alike
from weft.metrics.metric import Metric


class Accuracy(Metric):
    """Share of lines equal to their reference, ignoring white space at the ends; 0..1.

    Of a list of classes, such as the tags of a sentence, each counts; a set is right as a whole.

    Example:
        >>> Accuracy().score(["1 2 3", "4"], ["1 2 3", "5"]).value
        0.5
    """

    name = "accuracy"
    perfect = 1.0
    reads = ("labels", "texts")

    def statistics(
        self, hypotheses: Sequence[Label], references: Sequence[Label], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: 1 if the line is right else 0, and 1; of lists, right classes and classes."""
        rows: list[tuple[int, int]] = []
        for ours, theirs in zip(hypotheses, references, strict=True):
            check_alike(ours, theirs)
            if isinstance(ours, str) and isinstance(theirs, str):
                rows.append((int(ours.strip() == theirs.strip()), 1))
            elif isinstance(theirs, set | frozenset):
                rows.append((int(set(ours) == theirs), 1))
            else:
                right = sum(one == other for one, other in zip(ours, theirs, strict=False))
                rows.append((right, max(len(ours), len(theirs))))
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def signature(self) -> str:
        return "unit:line|case:mixed"
