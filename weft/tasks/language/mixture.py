"""An n-gram model as the baseline of a neural one, and a mixture of both.

    p(w | u) = (1 - λ) p_neural(w | u) + λ p_ngram(w | u)

Both read the same tokens, so that their probabilities may be mixed token by token.
Source: Mikolov et al. 2011, section 3, for the mixture. Read next: evaluation.py.
"""

import math
from typing import NamedTuple

import numpy as np

from weft.ngram.kneser_ney import kneser_ney
from weft.ngram.model import NGram
from weft.tasks.language.stream import Stream
from weft.tasks.shared.running_text import Batching
from weft.text.vocabulary import EOS, PAD, SOS

STEPS = 40  # of a search that narrows an interval by 0.618 each


class Counted(NamedTuple):
    """An n-gram model of the training text."""

    model: NGram
    bound: bool  # whether contexts end at line ends

    @property
    def name(self) -> str:
        """Such as "KN5, contexts within a line"."""
        reach = "within a line" if self.bound else "over line ends"
        guessed = ", some discounts guessed" if self.model.fallback else ""
        return f"KN{self.model.order}, contexts {reach}{guessed}"


def counted(train: Stream, *, size: int, kind: str, batching: Batching, order: int = 0) -> Counted:
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
    return Counted(kneser_ney(tokens, size=size, order=order, start=SOS, never=(PAD,)), bound)


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


def ngram_logp(counted: Counted, stream: Stream) -> np.ndarray:
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


def halves(neural: np.ndarray, ngram: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Mix each half of a text with the weight tuned on the other half.

    Returns:
        The log-probabilities, and the weights of the first and of the second half.
    """
    cut = len(neural) // 2
    first, second = tuned(neural[cut:], ngram[cut:]), tuned(neural[:cut], ngram[:cut])
    parts = mixed(neural[:cut], ngram[:cut], first), mixed(neural[cut:], ngram[cut:], second)
    return np.concatenate(parts), (first, second)
