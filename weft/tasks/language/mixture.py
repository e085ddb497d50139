"""An n-gram model as the baseline of a neural one, and a mixture of both and of the neural one's cache.

    p(w | u) = (1 - λ) [(1 - μ) p_neural(w | u) + μ p_cache(w | u)] + λ p_ngram(w | u)

All read the same tokens, so that their probabilities may be mixed token by token.
Source: Mikolov et al. 2011, section 3, for the mixture. Read next: cache.py; evaluation.py.
"""

import math
from typing import NamedTuple

import numpy as np

from weft.models import Generator
from weft.ngram.kneser_ney import kneser_ney
from weft.ngram.model import NGram
from weft.tasks.language.cache import SHARPNESS, cached_logp
from weft.tasks.language.decoding import ProseDecoding
from weft.tasks.language.scoring import token_logp
from weft.tasks.language.stream import Stream
from weft.tasks.running_text.data import Batching, ProseData
from weft.text.vocabulary import EOS, PAD, SOS

STEPS = 40  # of a search that narrows an interval by 0.618 each
ROUNDS = 4  # in which the weights of the cache and of the n-grams are tuned in turn


class CountedNGrams(NamedTuple):
    """An n-gram model of the training text."""

    model: NGram
    bound: bool  # whether contexts end at line ends

    @property
    def name(self) -> str:
        """Such as "KN5, contexts within a line"."""
        reach = "within a line" if self.bound else "over line ends"
        guessed = ", some discounts guessed" if self.model.fallback else ""
        return f"KN{self.model.order}, contexts {reach}{guessed}"


def counted(train: Stream, *, size: int, kind: str, batching: Batching, order: int = 0) -> CountedNGrams:
    """The model of a training text.

    Args:
        train: the text.
        size: V.
        kind: of the vocabulary: characters are counted in longer n-grams, over line ends.
        batching: of the neural model; if it reads lines, so do the n-grams.
        order: 0 takes 7 for characters and 5 otherwise.
    """
    bound = batching == "lines" or kind in ("space", "word")
    order = order or (7 if kind == "character" else 5)
    tokens = with_starts(train.tokens, bound=bound)
    return CountedNGrams(kneser_ney(tokens, size=size, order=order, start=SOS, never=(PAD,)), bound)


def with_starts(tokens: np.ndarray, *, bound: bool) -> np.ndarray:
    """[</s>, w, .., </s>, w, ..] with <s> where contexts begin: before each line, for the </s> before it, or
    once at the front.

    Example:
        >>> with_starts(np.array([EOS, 7, EOS, 8, EOS]), bound=True).tolist() == [SOS, 7, EOS, SOS, 8, EOS]
        True
    """
    tokens = np.asarray(tokens, np.int64)
    if not bound:
        return np.concatenate([[SOS], np.where(tokens == SOS, EOS, tokens)])
    ends = tokens == EOS
    twice = np.repeat(tokens, np.where(ends, 2, 1))
    twice[np.cumsum(np.where(ends, 2, 1))[ends] - 1] = SOS
    return twice[1:-1] if ends[-1] else twice[1:]


def ngram_logp(counted: CountedNGrams, stream: Stream) -> np.ndarray:
    """Log-probabilities [N] of the tokens of a text, as `scoring.token_logp` gives them."""
    tokens = with_starts(stream.tokens, bound=counted.bound)
    found: np.ndarray = counted.model.score(tokens)[tokens != SOS]
    return found if counted.bound else found[1:]  # of the leading </s>


def mixed(neural: np.ndarray, ngram: np.ndarray, weight: float) -> np.ndarray:
    """Log-probabilities of the mixture; `weight` is that of the n-gram model."""
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.logaddexp(neural + np.log1p(-weight), ngram + np.log(weight))
    return found


def tuned(neural: np.ndarray, ngram: np.ndarray) -> float:
    """The weight that maximises the likelihood of these tokens, by golden-section search."""
    low, high, ratio = 0.0, 1.0, (math.sqrt(5) - 1) / 2
    for _ in range(STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if mixed(neural, ngram, left).sum() >= mixed(neural, ngram, right).sum():
            high = right
        else:
            low = left
    return (low + high) / 2


class MixtureWeights(NamedTuple):
    """The weights of a mixture; those of parts that it does not have are 0."""

    ngram: float = 0.0
    cache: float = 0.0
    sharpness: float = 0.0


class MixtureParts(NamedTuple):
    """Log-probabilities of the same tokens under the parts of a mixture."""

    neural: np.ndarray  # [N]
    ngram: np.ndarray | None = None  # [N]
    cache: np.ndarray | None = None  # [K, N], a row for each of SHARPNESS

    def part(self, some: slice) -> "MixtureParts":
        """Those of some tokens."""
        return MixtureParts(*(None if one is None else one[..., some] for one in self))  # type: ignore[arg-type]

    def mixed(self, weights: MixtureWeights) -> np.ndarray:
        """Log-probabilities [N] of the mixture."""
        found = self.neural
        if self.cache is not None:
            found = mixed(found, self.cache[SHARPNESS.index(weights.sharpness)], weights.cache)
        return found if self.ngram is None else mixed(found, self.ngram, weights.ngram)

    def tuned(self, ngram: float | None = None) -> MixtureWeights:
        """The weights that maximise the likelihood of these tokens.

        Args:
            ngram: the weight of the n-grams; None to tune it too.
        """
        if self.cache is None:
            return MixtureWeights(self._ngram(self.neural, ngram))
        found = []
        for sharpness, cache in zip(SHARPNESS, self.cache, strict=True):
            share, weight = 0.0 if ngram is None else ngram, 0.0
            for _ in range(ROUNDS if ngram is None and self.ngram is not None else 1):
                with_ngram = (self.neural, cache)
                if self.ngram is not None:
                    with_ngram = tuple(mixed(one, self.ngram, share) for one in with_ngram)  # type: ignore[assignment]
                weight = tuned(*with_ngram)
                share = self._ngram(mixed(self.neural, cache, weight), ngram)
            found.append(MixtureWeights(share, weight, sharpness))
        return max(found, key=lambda weights: float(self.mixed(weights).sum()))

    def _ngram(self, other: np.ndarray, given: float | None) -> float:
        if self.ngram is None:
            return 0.0
        return tuned(other, self.ngram) if given is None else given


def parts_of(
    model: Generator,
    stream: Stream,
    data: ProseData,
    decoding: ProseDecoding,
    ngrams: CountedNGrams | None = None,
) -> MixtureParts:
    """Read a text with a model, in the context that it was trained with, and with its cache.

    Args:
        model: in evaluation mode.
        stream: the text.
        data, decoding: the recipe's sections.
        ngrams: the n-grams, if they are mixed in.
    """
    ngram = None if ngrams is None else ngram_logp(ngrams, stream)
    if decoding.cache:
        both = cached_logp(model, stream, decoding.cache)
        return MixtureParts(both.neural, ngram, both.cache)
    logp = token_logp(model, stream, data.batches, length=data.length, stride=decoding.stride)
    return MixtureParts(logp, ngram)


def halves(
    parts: MixtureParts, ngram: float | None = None
) -> tuple[np.ndarray, tuple[MixtureWeights, MixtureWeights]]:
    """Mix each half of a text with the weights tuned on the other half.

    Args:
        parts: of the text.
        ngram: the weight of the n-grams; None to tune it too.

    Returns:
        The log-probabilities, and the weights of the first and of the second half.
    """
    cut = len(parts.neural) // 2
    first, second = parts.part(slice(cut)), parts.part(slice(cut, None))
    weights = second.tuned(ngram), first.tuned(ngram)
    return np.concatenate([first.mixed(weights[0]), second.mixed(weights[1])]), weights
