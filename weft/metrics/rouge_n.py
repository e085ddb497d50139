"""ROUGE of summaries: words, pairs of words and longest common subsequences, as F1. Read next: rouge.py."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from weft.metrics.metric import Metric
from weft.metrics.rouge import longest_common
from weft.shapes import check_choice

Kind = Literal["1", "2", "L"]
_WORD = re.compile(r"[^\W_]+")


class Rouge(Metric):
    """Mean over lines of F = 2 P R / (P + R), 0..100, of what output and reference have in common.

    "1" and "2" count words and pairs of neighbours (as often as in the one that has fewer), "L" is the
    longest common subsequence. Words are runs of letters and digits in small letters, without stemming.

    Args:
        kind: "1", "2" or "L".

    Source: Lin 2004, sections 2 and 3.1; F with beta 1 and the words of the usual rouge_score, but of any
    script.

    Example:
        >>> round(Rouge("L").score(["police kill the gunman"], ["police killed the gunman"]).value, 2)
        75.0
    """

    name = "ROUGE"

    def __init__(self, kind: Kind = "1") -> None:
        check_choice("kind", kind, Kind)
        self.kind: Kind = kind

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: F of the line, and 1."""
        rows = [
            (self._f(_words(said), _words(known)), 1.0)
            for said, known in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def _f(self, said: list[str], known: list[str]) -> float:
        if self.kind == "L":
            common, ours, theirs = longest_common(said, known), len(said), len(known)
        else:
            width = int(self.kind)
            one, other = _grams(said, width), _grams(known, width)
            common, ours, theirs = (one & other).total(), one.total(), other.total()
        return 2 * common / (ours + theirs) if common else 0.0

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return 100 * totals[..., 0] / np.maximum(totals[..., 1], 1)

    def signature(self) -> str:
        """Which kind, which words."""
        return f"kind:{self.kind}|F:beta1|mean:lines|case:lower|words:letters+digits|stem:no"


def _words(line: str) -> list[str]:
    return _WORD.findall(line.lower())


def _grams(words: list[str], width: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[place:] for place in range(width)), strict=False))
