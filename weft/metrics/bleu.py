"""BLEU: n-gram precision up to four words with a penalty for brevity, counted by sacrebleu.

Which BLEU it is stands in the signature; two figures compare only where it is the same. The counts and
the tokenisation are sacrebleu's; only the last formula is written here, over arrays, so that a thousand
resamples cost no more than one. Read next: bootstrap.py.
"""

from collections.abc import Sequence

import numpy as np
import sacrebleu

from weft.errors import ConfigError
from weft.metrics.metric import Metric

ORDER = 4
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""Those of sacrebleu that need no download: 13a for most languages, zh for Chinese, none for cut text."""


class Bleu(Metric):
    """Corpus BLEU against one reference a line, 0..100.

    BLEU = BP · exp(Σ_n log p_n / 4), BP = min(1, exp(1 - r/c)), with c and r the words of all hypotheses
    and references; an order without any match counts as half, a quarter … of one (sacrebleu's `exp`).

    Args:
        tokenize: how sacrebleu cuts words; "none" with text that is tokenised already.
        lowercase: compare without case.

    Source: Papineni et al. 2002; Post 2018 for the signature.

    Example:
        >>> round(Bleu().score(["the cat sat on the mat"], ["the cat sat on a mat"]).value, 2)
        53.73
    """

    name = "BLEU"

    def __init__(self, *, tokenize: str = "13a", lowercase: bool = False) -> None:
        if tokenize not in TOKENIZERS:
            raise ConfigError(f"bleu: tokenize is {tokenize!r}; choose one of {', '.join(TOKENIZERS)}")
        # force: text that ends in " ." is right for tokenised BLEU and no reason for a warning
        self._counter = sacrebleu.BLEU(
            tokenize=tokenize, lowercase=lowercase, force=True, effective_order=False
        )

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 10]: words of hypothesis and reference, matches of 1..4 words, n-grams of 1..4 words."""
        rows = self._counter._extract_corpus_statistics(list(hypotheses), [list(references)])
        return np.array(rows, dtype=np.float64)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 10] to [...]."""
        words, reference_words = totals[..., 0], totals[..., 1]
        matches, ngrams = totals[..., 2 : 2 + ORDER], totals[..., 2 + ORDER :]
        missed = (matches == 0).cumsum(-1)  # the k-th order without a match counts 2^-k of one
        share = np.where(matches > 0, matches, 0.5**missed) / np.maximum(ngrams, 1)
        brevity = np.exp(np.minimum(0, 1 - reference_words / np.maximum(words, 1)))
        bleu = 100 * brevity * np.exp(np.log(share).mean(-1))
        return np.where((matches[..., 0] > 0) & (ngrams[..., -1] > 0), bleu, 0.0)

    def signature(self) -> str:
        """sacrebleu's own."""
        self._counter.num_refs = 1  # sacrebleu knows it only after a first score
        return str(self._counter.get_signature())
