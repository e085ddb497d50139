"""Word and character error rates: substitutions, deletions and insertions per unit of the reference."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from weft.metrics.metric import Metric
from weft.words import spaced


class WordEdits(NamedTuple):
    """The fewest edits that turn a reference into a hypothesis."""

    substitutions: int
    deletions: int
    insertions: int

    @property
    def total(self) -> int:
        """The Levenshtein distance."""
        return sum(self)


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> WordEdits:
    """The fewest edits; ties go to the one with the most substitutions."""
    row = [WordEdits(0, 0, count) for count in range(len(hypothesis) + 1)]
    for word in reference:
        before, row[0] = row[0], row[0]._replace(deletions=row[0].deletions + 1)
        for at, other in enumerate(hypothesis, 1):
            replaced = before if word == other else before._replace(substitutions=before.substitutions + 1)
            deleted = row[at]._replace(deletions=row[at].deletions + 1)
            inserted = row[at - 1]._replace(insertions=row[at - 1].insertions + 1)
            before = row[at]
            row[at] = min(replaced, deleted, inserted, key=lambda way: (way.total, -way.substitutions))
    return row[-1]


def unspaced_note(name: str, references: Sequence[str]) -> str:
    """The warning of a score of words where references have no spaces between words, else nothing."""
    if spaced(references):
        return ""
    return (
        f"{name} counts what is between spaces, but the references have no spaces between words, so a "
        "wrong sign counts like a wrong sentence; read CER (metric cer), which counts characters"
    )


class ErrorRate(Metric):
    """100 (S + D + I) / N over all lines, where N counts the units of the references."""

    higher_is_better = False
    unit: ClassVar[str]

    @abstractmethod
    def cut(self, line: str) -> Sequence[str]:
        """Split a line into the units that are counted."""

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 4]: substitutions, deletions, insertions, and units of the reference."""
        rows = [
            (*edits(self.cut(reference), self.cut(hypothesis)), len(self.cut(reference)))
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 4] to [...]."""
        return 100 * totals[..., :3].sum(-1) / np.maximum(totals[..., 3], 1)

    def signature(self) -> str:
        """Case and punctuation are kept."""
        return f"percent|unit:{self.unit}|case:mixed|punctuation:kept"


class Wer(ErrorRate):
    """100 (S + D + I) / N over all lines, where N counts the words of the references.

    Words are separated by white space and compared as written. In a language without spaces between words use
    CER instead.

    Example:
        >>> round(Wer().score(["one too"], ["one two three"]).value, 2)
        66.67
    """

    name = "WER"
    unit = "word"

    def note(self, references: Sequence[str]) -> str:
        return unspaced_note(self.name, references)

    def cut(self, line: str) -> Sequence[str]:
        return line.split()


class Cer(ErrorRate):
    """100 (S + D + I) / N over all lines, in characters; a run of white space counts as one space.

    Example:
        >>> Cer().score(["ond"], ["one two"]).value.__round__(2)
        71.43
    """

    name = "CER"
    unit = "character"

    def cut(self, line: str) -> str:
        return " ".join(line.split())
