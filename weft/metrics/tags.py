"""Tag accuracy: the share of words with the right tag, with intervals over sentences.

Read next: accuracy.py; f1.py, a score for each tag.
"""

from collections.abc import Sequence

import numpy as np

from weft.metrics.accuracy import Accuracy
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
        ours, theirs = ([line.split() for line in lines] for lines in (hypotheses, references))
        return Accuracy().statistics(ours, theirs)

    def signature(self) -> str:
        return "unit:word|case:mixed"
