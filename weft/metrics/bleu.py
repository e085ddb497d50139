"""BLEU: n-gram precision up to four words with a brevity penalty, counted by sacrebleu.

The signature says which BLEU it is; two scores are comparable only if their signatures agree. Counts and
tokenisation are sacrebleu's. Only the final formula is written here, over arrays, so that a thousand
resamples are cheap. `bleu_n` is BLEU-1 to BLEU-4 of captions against several references, as in COCO's
evaluation. Read next: tokenizers.py; intervals.py; rouge_n.py and cider.py, other scores of captions.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import sacrebleu

from weft.metrics.captions import CaptionWords, grams, words_of
from weft.metrics.metric import Metric, SacrebleuMetric
from weft.metrics.scored import ScoreWithBaselines, of_rows
from weft.metrics.tokenizers import WordMetric

ORDER = 4


class Bleu(WordMetric, SacrebleuMetric):
    """Corpus BLEU against one reference per line, 0..100.

    BLEU = BP · exp(Σ_n log p_n / 4), BP = min(1, exp(1 - r/c)), where c and r are the numbers of words in all
    hypotheses and references. The k-th order without a match counts as 2^-k matches (sacrebleu's `exp`).

    Args:
        tokenize: sacrebleu's tokeniser; "auto" chooses it by the script of the references, "none" is for text
            that is already tokenised.
        lowercase: ignore case.

    Raises:
        ConfigError: an unknown tokeniser, or one that is not installed.

    Source: Papineni et al. 2002; Post 2018 for the signature.

    Example:
        >>> round(Bleu().score(["the cat sat on the mat"], ["the cat sat on a mat"]).value, 2)
        53.73
    """

    name = "BLEU"

    def __init__(self, *, tokenize: str = "auto", lowercase: bool = False) -> None:
        super().__init__(tokenize=tokenize)
        self.lowercase = lowercase

    @cached_property
    def _counter(self) -> sacrebleu.BLEU:
        # force: do not warn about text that ends in " .", which is right for tokenised BLEU
        return sacrebleu.BLEU(
            tokenize=self.tokenize, lowercase=self.lowercase, force=True, effective_order=False
        )

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 10] to [...]: words of hypothesis and reference, matches of 1..4 words, n-grams of 1..4."""
        words, reference_words = totals[..., 0], totals[..., 1]
        matches, ngrams = totals[..., 2 : 2 + ORDER], totals[..., 2 + ORDER :]
        missed = (matches == 0).cumsum(-1)  # the k-th order without a match counts as 2^-k matches
        share = np.where(matches > 0, matches, 0.5**missed) / np.maximum(ngrams, 1)
        brevity = np.exp(np.minimum(0, 1 - reference_words / np.maximum(words, 1)))
        bleu = 100 * brevity * np.exp(np.log(share).mean(-1))
        return np.where((matches[..., 0] > 0) & (ngrams[..., -1] > 0), bleu, 0.0)

    def signature(self) -> str:
        if self.tokenize == "auto":
            return self.tokenized("13a").signature().replace("|tok:13a|", "|tok:auto|")
        return super().signature()


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

    Args:
        hypotheses: [N] captions.
        references: [N] lists of one or more.

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
