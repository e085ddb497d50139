"""Add mistakes to texts: words left out, neighbouring words swapped, typing errors.

A translator trained only on clean text may fail at a typing error. The mistakes are made in
tokens, so that unknown ones stay. Words between < and > (tags) stay too. Read next: sampling.py, other
segmentations of the same words.

Source: Lample et al. 2018, "Unsupervised Machine Translation Using Monolingual Corpora Only", section 2.3,
words left out; Karpukhin et al. 2019, "Training on Synthetic Noise Improves Robustness to Natural Noise in
Machine Translation", typing errors. We exchange neighbours where Lample et al. shuffle up to three places.
"""

import random
from collections.abc import Iterable

from weft.errors import ConfigError
from weft.text.pieces import KINDS
from weft.text.vocabulary import UNK, Vocabulary

Group = list[int]
"""The tokens of a word with its space."""


class Noise:
    """Puts mistakes into texts whose tokens are known.

    Args:
        drop: probability of leaving a word out; one word always stays.
        swap: probability of swapping a word with the next.
        typos: probability of a typing error in a word of at least two letters: one is left out, doubled,
            exchanged with the next, or replaced by another of the text.
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
