"""Word error rate: what must be changed, left out and put in, a word of the reference. Read next: cer.py."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.metric import Metric


class Edits(NamedTuple):
    """The cheapest way from a reference to a hypothesis."""

    substitutions: int
    deletions: int
    insertions: int

    @property
    def total(self) -> int:
        """Levenshtein's distance."""
        return sum(self)


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> Edits:
    """Fewest edits; of ways that are equally short, one with the most substitutions.

    Example:
        >>> edits("a b c".split(), "a x c d".split())
        Edits(substitutions=1, deletions=0, insertions=1)
    """
    row = [Edits(0, 0, count) for count in range(len(hypothesis) + 1)]
    for word in reference:
        before, row[0] = row[0], row[0]._replace(deletions=row[0].deletions + 1)
        for at, said in enumerate(hypothesis, 1):
            changed = before if word == said else before._replace(substitutions=before.substitutions + 1)
            out = row[at]._replace(deletions=row[at].deletions + 1)
            put = row[at - 1]._replace(insertions=row[at - 1].insertions + 1)
            before = row[at]
            row[at] = min(changed, out, put, key=lambda way: (way.total, -way.substitutions))
    return row[-1]


class Wer(Metric):
    """100 (S + D + I) / N over all lines: edits of words to words of the references, in percent.

    Words are what stands between white space, as written.

    Example:
        >>> round(Wer().score(["one too"], ["one two three"]).value, 2)
        66.67
    """

    name = "WER"
    higher_is_better = False
    unit = "word"

    def cut(self, line: str) -> Sequence[str]:
        """The units that are counted."""
        return line.split()

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 4]: substitutions, deletions, insertions, and units of the reference."""
        rows = [
            (*edits(self.cut(reference), self.cut(said)), len(self.cut(reference)))
            for said, reference in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 4] to [...]."""
        return 100 * totals[..., :3].sum(-1) / np.maximum(totals[..., 3], 1)

    def signature(self) -> str:
        """Case and punctuation count."""
        return f"percent|unit:{self.unit}|case:mixed|punctuation:kept"
