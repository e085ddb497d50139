"""Character error rate: the word error rate, counted in characters. Read next: wer.py."""

from collections.abc import Sequence

import numpy as np

from weft.metrics.metric import Metric
from weft.metrics.wer import Wer


class Cer(Metric):
    """100 (S + D + I) / N over all lines, in characters; a run of white space counts as one space.

    Example:
        >>> Cer().score(["ond"], ["one two"]).value.__round__(2)
        71.43
    """

    name = "CER"
    higher_is_better = False

    def __init__(self) -> None:
        self._counter = _Letters()

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 4]: substitutions, deletions, insertions, and characters of the reference."""
        return self._counter.statistics(hypotheses, references)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 4] to [...]."""
        return self._counter.value(totals)

    def signature(self) -> str:
        """Case and punctuation are kept."""
        return self._counter.signature()


class _Letters(Wer):
    unit = "character"

    def cut(self, line: str) -> Sequence[str]:
        return " ".join(line.split())
