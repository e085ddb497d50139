"""Accuracy of tags: the share of words whose tag is right, with intervals over sentences.

Read next: accuracy.py; f1.py, for each tag by itself.
"""

from collections.abc import Sequence

import numpy as np

from weft.metrics.metric import Metric


class TagAccuracy(Metric):
    """Tags equal to the reference's at the same place; a missing one is wrong. A line is a sentence.

    Example:
        >>> TagAccuracy().score(["DET NOUN", "VERB"], ["DET VERB", "VERB"]).value
        0.6666666666666666
    """

    name = "tag accuracy"

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: right tags of a sentence, and its tags."""
        rows = []
        for ours, theirs in zip(hypotheses, references, strict=True):
            given, wanted = ours.split(), theirs.split()
            right = sum(one == other for one, other in zip(given, wanted, strict=False))
            rows.append((right, max(len(wanted), len(given))))
        return np.array(rows, dtype=np.float64)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return totals[..., 0] / np.maximum(totals[..., 1], 1)

    def signature(self) -> str:
        return "unit:word|case:mixed"
