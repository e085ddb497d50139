"""BLEU of single sentences, smoothed so that short or partly right ones still score. Read next: bleu.py."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from weft.metrics.bleu import ORDER, Bleu
from weft.metrics.tokenizers import WordMetric


class SentenceBleu(WordMetric):
    """Mean of sentence BLEU, 0..100, adding 1 to the counts of matches and n-grams from bigrams up.

    BLEU = BP · (p_1 Π_{n=2..4} (m_n + 1) / (l_n + 1))^(1/4), BP = min(1, exp(1 - r/c)). Minimum-risk
    training needs this score; for a whole text prefer `Bleu`.

    Args:
        tokenize, lowercase: as in Bleu.

    Raises:
        ConfigError: an unknown tokeniser, or one that is not installed.

    Source: Lin and Och 2004, section 4.2 (BLEUS); sacrebleu's `add-k` with k = 1.

    Example:
        >>> round(SentenceBleu().score(["the cat"], ["the cat sat"]).value, 2)
        60.65
    """

    name = "sentence BLEU"
    graded = True

    def __init__(self, *, tokenize: str = "auto", lowercase: bool = False) -> None:
        super().__init__(tokenize=tokenize)
        self.lowercase = lowercase

    @cached_property
    def _bleu(self) -> Bleu:
        return Bleu(tokenize=self.tokenize, lowercase=self.lowercase)

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: BLEU of the sentence, and 1."""
        counts = self._bleu.statistics(hypotheses, references)
        words, reference_words = counts[:, 0], counts[:, 1]
        added = np.array([0] + [1] * (ORDER - 1))
        matches, ngrams = counts[:, 2 : 2 + ORDER] + added, counts[:, 2 + ORDER :] + added
        brevity = np.exp(np.minimum(0, 1 - reference_words / np.maximum(words, 1)))
        # a sentence without a matching word scores 0, because none of its longer n-grams can match
        logs = np.log(np.maximum(matches, 1) / np.maximum(ngrams, 1)).mean(1)
        bleu = np.where(matches[:, 0] > 0, 100 * brevity * np.exp(logs), 0.0)
        return np.stack([bleu, np.ones(len(bleu))], 1)

    def signature(self) -> str:
        """Case, tokenisation and smoothing."""
        case = "lc" if self.lowercase else "mixed"
        return f"case:{case}|tok:{self.tokenization}|smooth:add-1 from 2-grams|mean of sentences"
