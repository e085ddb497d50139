"""BLEU: n-gram precision up to four words with a brevity penalty, counted by sacrebleu.

The signature says which BLEU it is; two scores are comparable only if their signatures agree. Counts and
tokenisation are sacrebleu's. Only the final formula is written here, over arrays, so that a thousand
resamples are cheap. Read next: bootstrap.py.
"""

from collections.abc import Sequence

import numpy as np
import sacrebleu

from weft.errors import ConfigError
from weft.metrics.metric import Metric

ORDER = 4
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""sacrebleu's tokenisers that need no download: 13a for most languages, zh for Chinese, none if tokenised."""


class Bleu(Metric):
    """Corpus BLEU against one reference per line, 0..100.

    BLEU = BP · exp(Σ_n log p_n / 4), BP = min(1, exp(1 - r/c)), where c and r are the numbers of words in all
    hypotheses and references. The k-th order without a match counts as 2^-k matches (sacrebleu's `exp`).

    Args:
        tokenize: sacrebleu's tokeniser; "none" for text that is already tokenised.
        lowercase: ignore case.

    Source: Papineni et al. 2002; Post 2018 for the signature.

    Example:
        >>> round(Bleu().score(["the cat sat on the mat"], ["the cat sat on a mat"]).value, 2)
        53.73
    """

    name = "BLEU"

    def __init__(self, *, tokenize: str = "13a", lowercase: bool = False) -> None:
        if tokenize not in TOKENIZERS:
            raise ConfigError(f"bleu: tokenize: expected one of {', '.join(TOKENIZERS)}, got {tokenize!r}")
        # force: do not warn about text that ends in " .", which is right for tokenised BLEU
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
        missed = (matches == 0).cumsum(-1)  # the k-th order without a match counts as 2^-k matches
        share = np.where(matches > 0, matches, 0.5**missed) / np.maximum(ngrams, 1)
        brevity = np.exp(np.minimum(0, 1 - reference_words / np.maximum(words, 1)))
        bleu = 100 * brevity * np.exp(np.log(share).mean(-1))
        return np.where((matches[..., 0] > 0) & (ngrams[..., -1] > 0), bleu, 0.0)

    def signature(self) -> str:
        self._counter.num_refs = 1  # sacrebleu sets it only after the first score
        return str(self._counter.get_signature())
