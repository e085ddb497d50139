"""Other segmentations of a text, new ones each time it is trained on: subword regularisation.

A model that always sees a word as the same pieces never learns what its parts mean. With a few of its
merges left out at random (bpe), or pieces drawn by their probability (unigram), it sees the word in several
ways. Read next: vocabulary.py; learn.py, which learns the probabilities.

Source: Provilkov, Emelianenko and Voita 2020, "BPE-Dropout", algorithm 1; Kudo 2018, "Subword
Regularization", section 3.3, with all segmentations (l = ∞).
"""

import math
import random
from collections.abc import Callable, Iterable
from itertools import pairwise

from weft.errors import ConfigError
from weft.text.vocabulary import EOS, Vocabulary

Cut = Callable[[str, random.Random], list[int]]
"""A segmentation of a word that has its space, drawn at random."""


class SampledPieces:
    """Draws other segmentations of texts whose tokens are known.

    Args:
        vocabulary: of kind bpe or unigram, trained by Weft.
        alpha: exponent of a segmentation's probability (unigram): 0 draws all alike; the larger it is, the
            more often the usual one. None for bpe.

    Raises:
        ConfigError: the vocabulary is of another kind, or the setting is out of range.
    """

    def __init__(self, vocabulary: Vocabulary, *, dropout: float = 0.0, alpha: float | None = None) -> None:
        check_can_sample(vocabulary.kind, dropout=dropout, alpha=alpha)
        self._spelled = vocabulary.spelled(range(len(vocabulary)))
        numbers = {piece: number for number, piece in enumerate(self._spelled)}
        self._cut: Cut = (
            _Merges(vocabulary, numbers, dropout) if alpha is None else _Lattice(vocabulary, numbers, alpha)
        )

    def draw(self, ids: Iterable[int], chance: random.Random) -> list[int]:
        """The same text in other pieces; special and unknown tokens stay."""
        found: list[int] = []
        word = ""
        for number in ids:
            inside = EOS < number < len(self._spelled)
            piece = self._spelled[number] if inside else ""
            if word and (not inside or piece.startswith(" ")):
                found += self._cut(word, chance)
                word = ""
            if inside:
                word += piece
            else:
                found.append(int(number))
        return found + self._cut(word, chance) if word else found


def check_can_sample(kind: str, *, dropout: float, alpha: float | None) -> None:
    """Check that a vocabulary of this kind can be sampled so; see SampledPieces."""
    if not 0 <= dropout < 1:
        raise ConfigError(f"dropout: expected a probability of at least 0 and below 1, got {dropout:g}")
    if dropout and kind != "bpe":
        raise ConfigError(f"dropout: needs a vocabulary of kind bpe, got {kind}; unigram has alpha")
    if alpha is None:
        return
    if not 0 <= alpha < math.inf:
        raise ConfigError(f"alpha: expected a number of at least 0, got {alpha:g}")
    if kind != "unigram":
        raise ConfigError(f"alpha: needs a vocabulary of kind unigram, got {kind}; bpe has dropout")


class _Merges:
    """Byte-pair encoding that skips each possible merge with some probability, at each step."""

    def __init__(self, vocabulary: Vocabulary, numbers: dict[str, int], dropout: float) -> None:
        merges = vocabulary.as_json()["model"]["merges"]
        self._ranks = {(left, right): rank for rank, (left, right) in enumerate(merges)}
        self._numbers = numbers
        self._dropout = dropout

    def __call__(self, word: str, chance: random.Random) -> list[int]:
        symbols, ranks, kept = list(word), self._ranks, self._dropout
        while True:
            possible = [
                (ranks[pair], place)
                for place, pair in enumerate(pairwise(symbols))
                if pair in ranks and chance.random() >= kept
            ]
            if not possible:
                return [self._numbers[symbol] for symbol in symbols]
            place = min(possible)[1]
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]


class _Lattice:
    """A segmentation drawn with a probability proportional to Π p(piece)^alpha."""

    def __init__(self, vocabulary: Vocabulary, numbers: dict[str, int], alpha: float) -> None:
        scores = dict(vocabulary.as_json()["model"]["vocab"])
        self._logp = {piece: alpha * scores[piece] for piece, number in numbers.items() if number > EOS}
        self._longest = max(map(len, self._logp), default=1)
        self._numbers = numbers

    def __call__(self, word: str, chance: random.Random) -> list[int]:
        """Sums of the beginnings from left to right, then pieces drawn from right to left."""
        ways: list[list[tuple[float, int]]] = []  # of each end: log weight and start of each last piece
        total = [0.0]  # of each end: log of the summed weight of all segmentations up to it
        for end in range(1, len(word) + 1):
            here = [
                (total[start] + self._logp[word[start:end]], start)
                for start in range(max(0, end - self._longest), end)
                if word[start:end] in self._logp and total[start] > -math.inf
            ]
            ways.append(here)
            most = max(here)[0] if here else -math.inf  # none ends inside a symbol pair that is one piece
            total.append(
                most + math.log(sum(math.exp(weight - most) for weight, _ in here)) if here else most
            )
        found, end = list[int](), len(word)
        while end:
            weights, starts = zip(*ways[end - 1], strict=True)
            start = chance.choices(starts, [math.exp(weight - total[end]) for weight in weights])[0]
            found.append(self._numbers[word[start:end]])
            end = start
        return found[::-1]
