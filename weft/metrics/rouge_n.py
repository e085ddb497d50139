"""ROUGE-1, ROUGE-2 and ROUGE-L of summaries, as F1, and ROUGE-L of captions, as in COCO's evaluation."""

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
import regex

from weft.metrics.captions import grams, words_of
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, mean_of, ratio
from weft.shapes import check_choice
from weft.words import LETTERS, spaced, units

Kind = Literal["1", "2", "L"]
Tokenize = Literal["auto", "words", "characters"]
BETA = 1.2
"""Weight of recall relative to precision in COCO's evaluation."""
_WORD = regex.compile(rf"{LETTERS}+")


class Rouge(Metric):
    """Mean over lines of F = 2 P R / (P + R), 0..100, of n-grams shared by output and reference.

    "1" and "2" count shared unigrams and bigrams, "L" the longest common subsequence. Words are lower-cased
    runs of letters and digits, without stemming.

    Args:
        kind: "1", "2" or "L".
        tokenize: "characters" counts each sign of scripts without spaces between words as a word; "auto"
            does if the references are in such a script.

    Raises:
        ConfigError: an unknown `kind` or `tokenize`.

    Source: Lin 2004, sections 2 and 3.1; F with beta 1. Words are those of the package rouge_score, extended
        to every script.

    Example:
        >>> round(Rouge(kind="L").score(["police kill the gunman"], ["police killed the gunman"]).value, 2)
        75.0
    """

    name = "ROUGE"
    graded = True

    def __init__(self, *, kind: Kind = "1", tokenize: Tokenize = "auto") -> None:
        check_choice("kind", kind, Kind)
        check_choice("tokenize", tokenize, Tokenize)
        self.kind: Kind = kind
        self.tokenize: Tokenize = tokenize

    def fitted(self, references: Sequence[str], *outputs: Sequence[str]) -> Self:
        if self.tokenize != "auto":
            return self
        return type(self)(kind=self.kind, tokenize="words" if spaced(references) else "characters")

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: F of the line, and 1."""
        cut = self.fitted(references)._words
        rows = [
            (self._f(cut(output), cut(known)), 1.0)
            for output, known in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def _f(self, output: list[str], known: list[str]) -> float:
        if self.kind == "L":
            common, ours, theirs = longest_common(output, known), len(output), len(known)
        else:
            width = int(self.kind)
            one, other = grams(output, width), grams(known, width)
            common, ours, theirs = (one & other).total(), one.total(), other.total()
        return 2 * common / (ours + theirs) if common else 0.0

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return 100 * super().value(totals)

    def signature(self) -> str:
        """The kind of ROUGE and how words are counted."""
        cut = "letters+digits" if self.tokenize == "words" else self.tokenize
        return f"kind:{self.kind}|F:beta1|mean:lines|case:lower|words:{cut}|stem:no"

    def _words(self, line: str) -> list[str]:
        found: list[str] = _WORD.findall(line.lower())
        return found if self.tokenize == "words" else [unit for word in found for unit in units(word)]


def rouge_l(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, beta: float = BETA
) -> ScoreWithBaselines:
    """Mean over captions of F = (1 + b^2) P R / (R + b^2 P), 0..100.

    P and R are the longest common subsequence's share of hypothesis and reference, each the best over
    the references, as in COCO's evaluation.

    Args:
        hypotheses: [N] captions.
        references: [N] lists of one or more.
        beta: b.

    Source: Lin 2004, eq. 2-4.

    Example:
        >>> round(rouge_l(["police kill the gunman"], [["police killed the gunman"]]).value, 2)
        75.0
    """
    found, words = [], words_of(hypotheses, references)
    for hypothesis, answers in zip(hypotheses, references, strict=True):
        output, known = words.cut(hypothesis), [words.cut(answer) for answer in answers]
        common = [longest_common(output, one) for one in known]
        precision = max(common) / max(1, len(output))
        recall = max(count / max(1, len(one)) for count, one in zip(common, known, strict=True))
        below = recall + beta**2 * precision
        found.append((1 + beta**2) * precision * recall / below if below else 0.0)
    metric = ratio("ROUGE-L", f"{words.signature}|beta:{beta:g}", higher_is_better=True, graded=True)
    return mean_of(metric, 100 * np.array(found), baselines={})


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, against in enumerate(other, 1):
            before, row[at] = row[at], before + 1 if word == against else max(row[at], row[at - 1])
    return row[-1]
