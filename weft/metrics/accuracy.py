"""Accuracy: the share of lines that are exactly right. Read next: tags.py."""

from collections.abc import Sequence

import numpy as np

from weft.metrics.metric import Metric


class Accuracy(Metric):
    """Share of lines equal to their reference, ignoring white space at the ends; 0..1.

    Example:
        >>> Accuracy().score(["1 2 3", "4"], ["1 2 3", "5"]).value
        0.5
    """

    name = "accuracy"

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: 1 if the line is right else 0, and 1."""
        right = [ours.strip() == theirs.strip() for ours, theirs in zip(hypotheses, references, strict=True)]
        return np.stack([np.array(right, dtype=np.float64), np.ones(len(right))], 1)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return totals[..., 0] / totals[..., 1]

    def signature(self) -> str:
        return "unit:line|case:mixed"
