"""Scores of captions against several references, close to COCO's evaluation, without its Java.

BLEU-1 to BLEU-4 and CIDEr-D. Captions are cut into words in lower case, without punctuation; in scripts
without spaces between words each sign counts as a word. Read next: rouge_n.py, meteor.py.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
import regex

from weft.errors import DataError
from weft.metrics.metric import Metric, check_each, check_items
from weft.metrics.scored import ScoreWithBaselines, mean_of, of_rows, ratio
from weft.wording import kind_of
from weft.words import LETTERS, spaced, units

_PART = rf"(?:{LETTERS}|_)+"
_WORD = regex.compile(rf"{_PART}(?:[-']{_PART})*")


class CaptionWords(NamedTuple):
    """How captions are cut."""

    spaced: bool  # whether there are spaces between words; if not, each sign counts as a word

    def cut(self, caption: str) -> list[str]:
        """The words of a caption."""
        found: list[str] = _WORD.findall(caption.lower())
        return found if self.spaced else [unit for word in found for unit in units(word)]

    @property
    def signature(self) -> str:
        """The part of a signature that names the tokenisation."""
        return f"tok:{'words' if self.spaced else 'characters'}.lower.nosigns"


def words_of(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionWords:
    """How captions with these references are cut; checks both."""
    check_items(hypotheses, references, reads=("labels",))
    check_each("hypotheses", hypotheses)
    for place, several in enumerate(references):
        if isinstance(several, str) or not several:
            raise DataError(
                "references: expected a list of one or more texts for each caption, "
                f"got {kind_of(several)} at {place}"
            )
    return CaptionWords(spaced(chain.from_iterable(references)))


def grams(caption: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram of words occurs in a caption."""
    return Counter(tuple(caption[at : at + n]) for at in range(len(caption) - n + 1))


ORDER = 4
SIGMA = 6.0


class _BleuN(Metric):
    """Statistics [N, 2 + 2 ORDER]: words of hypothesis and nearest reference, matches, n-grams."""

    def __init__(self, order: int, words: CaptionWords) -> None:
        self.name, self.order, self.words = f"BLEU-{order}", order, words  # type: ignore[misc]

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Statistics against one reference per line."""
        return _counts(hypotheses, [[one] for one in references], self.words)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2 + 2 ORDER] to [...]."""
        ours, theirs = totals[..., 0], totals[..., 1]
        matched, total = np.split(totals[..., 2:], 2, axis=-1)
        brevity = np.exp(np.minimum(0.0, 1 - theirs / np.maximum(1, ours)))
        share = (matched / np.maximum(total, 1))[..., : self.order]
        mean = np.exp(np.log(np.maximum(share, 1e-300)).mean(-1))
        found: np.ndarray = np.where((share > 0).all(-1), 100 * brevity * mean, 0.0)
        return found

    def signature(self) -> str:
        return f"{self.words.signature}|len:closest|smooth:none"


def bleu_n(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[ScoreWithBaselines]:
    """BLEU-N = BP (p_1 ... p_N)^(1/N) for N = 1 .. 4, 0..100, over the whole set, with 95 % intervals.

    p_n clips each n-gram's count to its largest count in one reference. BP uses the reference whose length is
    nearest; ties go to the shorter one. An order without a match makes BLEU-N zero.

    Source: Papineni et al. 2002, section 2.
    """
    words = words_of(hypotheses, references)
    rows = _counts(hypotheses, references, words)
    return [of_rows(_BleuN(n, words), rows, baselines={}) for n in range(1, ORDER + 1)]


def _counts(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], words: CaptionWords
) -> np.ndarray:
    rows = np.zeros((len(hypotheses), 2 + 2 * ORDER))
    for row, hypothesis, answers in zip(rows, hypotheses, references, strict=True):
        output, known = words.cut(hypothesis), [words.cut(answer) for answer in answers]
        row[0] = len(output)
        row[1] = min((len(one) for one in known), key=lambda length: (abs(length - len(output)), length))
        for n in range(1, ORDER + 1):
            most: Counter[tuple[str, ...]] = Counter()
            for one in known:
                most |= grams(one, n)
            counted = grams(output, n)
            row[1 + n] = (counted & most).total()
            row[1 + ORDER + n] = counted.total()
    return rows


def cider_d(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, sigma: float = SIGMA
) -> ScoreWithBaselines:
    """CIDEr-D = 10/4 sum_n mean_j e^(-(l_c - l_j)^2 / 2 s^2) min(g_n(c), g_n(j)) g_n(j) / |g_n(c)| |g_n(j)|.

    g_n holds each n-gram's count times ln(I / max(1, images whose references contain it)) for I images. With
    a single image every n-gram occurs in all images, so the score is zero.

    Args:
        hypotheses: [I] captions.
        references: [I] lists of one or more.
        sigma: s, the width of the length penalty.

    Source: Vedantam, Zitnick & Parikh 2015, eq. 4 and section 6. Lengths are counted in bigrams, as in the
        authors' program, not in words.

    Example:
        >>> cider_d(["a red cat", "a blue dog"], [["a red cat"], ["the blue dog"]]).score.size
        2
    """
    words = words_of(hypotheses, references)
    known = [[_counted(answer, words) for answer in answers] for answers in references]
    seen: Counter[tuple[str, ...]] = Counter()
    for answers in known:
        seen.update({gram for answer in answers for orders in answer for gram in orders})
    images = log(max(1, len(known)))

    def weighed(caption: list[Counter[tuple[str, ...]]]) -> list[dict[tuple[str, ...], float]]:
        return [
            {gram: count * (images - log(max(1, seen[gram]))) for gram, count in orders.items()}
            for orders in caption
        ]

    found = []
    for hypothesis, answers in zip(hypotheses, known, strict=True):
        counted = _counted(hypothesis, words)
        ours, total = weighed(counted), 0.0
        for answer in answers:
            apart = counted[1].total() - answer[1].total()
            near = [_cosine(mine, theirs) for mine, theirs in zip(ours, weighed(answer), strict=True)]
            total += sum(near) / ORDER * exp(-(apart**2) / (2 * sigma**2))
        found.append(10 * total / len(answers))
    metric = ratio(
        "CIDEr-D", f"{words.signature}|idf:references|sigma:{sigma:g}", higher_is_better=True, graded=True
    )
    return mean_of(metric, np.array(found), baselines={})


def _counted(caption: str, words: CaptionWords) -> list[Counter[tuple[str, ...]]]:
    return [grams(words.cut(caption), n) for n in range(1, ORDER + 1)]


def _cosine(ours: dict[tuple[str, ...], float], theirs: dict[tuple[str, ...], float]) -> float:
    """Cosine, with the hypothesis's weights clipped to the reference's: repeating a word gains nothing."""
    shared = sum(min(weight, theirs[gram]) * theirs[gram] for gram, weight in ours.items() if gram in theirs)
    norms = sqrt(sum(w * w for w in ours.values())) * sqrt(sum(w * w for w in theirs.values()))
    return shared / norms if norms else 0.0
