"""ROUGE-1, ROUGE-2 and ROUGE-L of summaries, as F1. Read next: rouge.py."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import regex

from weft.metrics.metric import Metric
from weft.metrics.rouge import longest_common
from weft.shapes import check_choice
from weft.words import LETTERS

Kind = Literal["1", "2", "L"]
_WORD = regex.compile(rf"{LETTERS}+")


class Rouge(Metric):
    """Mean over lines of F = 2 P R / (P + R), 0..100, of n-grams shared by output and reference.

    "1" and "2" count shared unigrams and bigrams, "L" the longest common subsequence. Words are lower-cased
    runs of letters and digits, without stemming.

    Args:
        kind: "1", "2" or "L".

    Source: Lin 2004, sections 2 and 3.1; F with beta 1. Words are those of the package rouge_score, extended
        to every script.

    Example:
        >>> round(Rouge(kind="L").score(["police kill the gunman"], ["police killed the gunman"]).value, 2)
        75.0
    """

    name = "ROUGE"

    def __init__(self, *, kind: Kind = "1") -> None:
        check_choice("kind", kind, Kind)
        self.kind: Kind = kind

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: F of the line, and 1."""
        rows = [
            (self._f(_words(output), _words(known)), 1.0)
            for output, known in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def _f(self, output: list[str], known: list[str]) -> float:
        if self.kind == "L":
            common, ours, theirs = longest_common(output, known), len(output), len(known)
        else:
            width = int(self.kind)
            one, other = _grams(output, width), _grams(known, width)
            common, ours, theirs = (one & other).total(), one.total(), other.total()
        return 2 * common / (ours + theirs) if common else 0.0

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return 100 * totals[..., 0] / np.maximum(totals[..., 1], 1)

    def signature(self) -> str:
        """The kind of ROUGE and how words are counted."""
        return f"kind:{self.kind}|F:beta1|mean:lines|case:lower|words:letters+digits|stem:no"


def _words(line: str) -> list[str]:
    found: list[str] = _WORD.findall(line.lower())
    return found


def _grams(words: list[str], width: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[place:] for place in range(width)), strict=False))
