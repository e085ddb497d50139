"""BLEU of single sentences, smoothed so that short or partly right ones still score. Read next: bleu.py."""

from collections.abc import Sequence

import numpy as np

from weft.errors import ConfigError
from weft.metrics.bleu import ORDER, TOKENIZERS, Bleu
from weft.metrics.metric import Metric


class SentenceBleu(Metric):
    """Mean of sentence BLEU, 0..100, adding 1 to the counts of matches and n-grams from bigrams up.

    BLEU = BP · (p_1 Π_{n=2..4} (m_n + 1) / (l_n + 1))^(1/4), BP = min(1, exp(1 - r/c)). Minimum-risk
    training needs this score; for a whole text prefer `Bleu`.

    Args:
        tokenize, lowercase: as in Bleu.

    Raises:
        ConfigError: an unknown tokeniser.

    Source: Lin and Och 2004, section 4.2 (BLEUS); sacrebleu's `add-k` with k = 1.

    Example:
        >>> round(SentenceBleu().score(["the cat"], ["the cat sat"]).value, 2)
        60.65
    """

    name = "sentence BLEU"

    def __init__(self, *, tokenize: str = "13a", lowercase: bool = False) -> None:
        if tokenize not in TOKENIZERS:
            raise ConfigError(
                f"sentence_bleu: tokenize: expected one of {', '.join(TOKENIZERS)}, got {tokenize!r}"
            )
        self._bleu = Bleu(tokenize=tokenize, lowercase=lowercase)
        self._about = f"case:{'lc' if lowercase else 'mixed'}|tok:{tokenize}"

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

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        return totals[..., 0] / np.maximum(totals[..., 1], 1)

    def signature(self) -> str:
        """Case, tokenisation and smoothing."""
        return f"{self._about}|smooth:add-1 from 2-grams|mean of sentences"
