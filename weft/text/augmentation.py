"""Change a text each time it is trained on: other segmentations of its words, and mistakes.

A model that always sees a word as the same pieces never learns what its parts mean. With a few of its
merges left out at random (bpe), or pieces drawn by their probability (unigram), it sees the word in several
ways. A translator trained only on clean text may fail at a typing error. Read next: vocabulary.py; learn.py.

Source: Provilkov, Emelianenko and Voita 2020, "BPE-Dropout", algorithm 1; Kudo 2018, "Subword
Regularization", section 3.3, with all segmentations (l = ∞); Lample et al. 2018, "Unsupervised Machine
Translation Using Monolingual Corpora Only", section 2.3, words left out, but neighbours exchanged where they
shuffle up to three places; Karpukhin et al. 2019, "Training on Synthetic Noise Improves Robustness to
Natural Noise in Machine Translation", typing errors.
"""

import math
import random
from collections.abc import Callable, Iterable
from itertools import pairwise

from weft.errors import ConfigError
from weft.text.pieces import KINDS
from weft.text.vocabulary import EOS, UNK, Vocabulary

Cut = Callable[[str, random.Random], list[int]]
"""A segmentation of a word that has its space, drawn at random."""


class SampledPieces:
    """Draws other segmentations of texts whose tokens are known; of a vocabulary trained by Weft.

    `alpha` is the exponent of a segmentation's probability (unigram): 0 draws all alike; the larger it is,
    the more often the usual one. It is None for bpe.
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


Group = list[int]  # the tokens of a word with its space


class Noise:
    """Puts mistakes into the tokens of texts; unknown ones stay, and words between < and > (tags).

    A word is left out or swapped with the next with the probabilities `drop` and `swap`; one always stays. A
    typing error (`typos`) in a word of at least two letters leaves one out, doubles it, exchanges it with the
    next or replaces it by another of the text.
    """

    def __init__(self, vocabulary: Vocabulary, *, drop: float, swap: float, typos: float) -> None:
        check_splittable(vocabulary)
        self._vocabulary = vocabulary
        self._spelled = vocabulary.spelled(range(len(vocabulary)))
        self._drop, self._swap, self._typos = drop, swap, typos
        self._space = space(vocabulary)

    def draw(self, ids: Iterable[int], chance: random.Random) -> list[int]:
        """The text with mistakes; never empty unless it was."""
        words = self._words(ids)
        if self._drop and words:
            kept = [word for word in words if chance.random() >= self._drop or self._is_tag(word)]
            words = kept or [chance.choice(words)]
        if self._swap:
            self._exchange(words, chance)
        if self._typos:
            letters = [mark for word in words for mark in self._text(word) if mark.isalpha()]
            words = [self._mistyped(word, letters, chance) for word in words]
        found = [number for word in words for number in word]
        return found[len(self._space) :]

    def _words(self, ids: Iterable[int]) -> list[Group]:
        """The tokens of each word; the first word too has its space."""
        words: list[Group] = []
        alone = self._vocabulary.kind in ("word", "space")
        for number in [*self._space, *(int(one) for one in ids)]:
            beyond = number >= len(self._spelled) or (number == UNK and alone)
            if beyond or not words or self._spelled[number].startswith(" "):
                words.append([])
            words[-1].append(number)
        return [] if words == [self._space] else words

    def _exchange(self, words: list[Group], chance: random.Random) -> None:
        place = 0
        while place < len(words) - 1:
            if chance.random() < self._swap and not any(map(self._is_tag, words[place : place + 2])):
                words[place], words[place + 1] = words[place + 1], words[place]
                place += 1
            place += 1

    def _mistyped(self, word: Group, letters: list[str], chance: random.Random) -> Group:
        if chance.random() >= self._typos or self._is_tag(word):
            return word
        text = self._text(word).strip()
        places = [place for place, mark in enumerate(text) if mark.isalpha()]
        if len(places) < 2:
            return word
        place = chance.choice(places)
        end = text[place + 1 :]
        exchanged = end[:1] + text[place] + end[1:] if end[:1].isalpha() else end  # the last is left out
        wrong = chance.choice([end, 2 * text[place] + end, exchanged, chance.choice(letters) + end])
        return [*self._space, *self._vocabulary.encode(text[:place] + wrong)]

    def _text(self, word: Group) -> str:
        """The text of a word; nothing if a part of it is unknown."""
        if any(number == UNK or number >= len(self._spelled) for number in word):
            return ""
        return "".join(self._spelled[number] for number in word)

    def _is_tag(self, word: Group) -> bool:
        text = self._text(word).strip()
        return word[0] >= len(self._spelled) or (text.startswith("<") and text.endswith(">"))


def check_splittable(vocabulary: Vocabulary) -> None:
    """Check that texts of a vocabulary can be split and joined at their tokens."""
    if vocabulary.kind not in KINDS or vocabulary.begin() or vocabulary.encode(""):
        raise ConfigError("data.augment: expected a vocabulary trained by Weft, got an imported one")


def space(vocabulary: Vocabulary) -> list[int]:
    """The token between two texts that are joined: none, unless characters are tokens."""
    if vocabulary.kind != "character":
        return []
    numbered = {piece: number for number, piece in enumerate(vocabulary.spelled(range(len(vocabulary))))}
    return [numbered[" "]] if " " in numbered else []
