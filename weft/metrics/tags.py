"""Tag accuracy: the share of words with the right tag, with intervals over sentences.

Read next: accuracy.py; f1.py, a score for each tag.
"""

from collections.abc import Sequence

import numpy as np

from weft.metrics.metric import Metric


class TagAccuracy(Metric):
    """Share of tags equal to the reference's tag at the same position; a missing tag is wrong.

    Example:
        >>> TagAccuracy().score(["DET NOUN", "VERB"], ["DET VERB", "VERB"]).value
        0.6666666666666666
    """

    name = "tag accuracy"
    perfect = 1.0
    reads = ("tags",)

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: right tags and all tags of each sentence."""
        rows = []
        for ours, theirs in zip(hypotheses, references, strict=True):
            given, wanted = ours.split(), theirs.split()
            right = sum(one == other for one, other in zip(given, wanted, strict=False))
            rows.append((right, max(len(wanted), len(given))))
        return np.array(rows, dtype=np.float64)

    def signature(self) -> str:
        return "unit:word|case:mixed"
