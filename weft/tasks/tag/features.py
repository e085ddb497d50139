"""Features of words, written by hand: what a linear tagger reads instead of vectors.

They are the word, its beginnings and endings, its shape and its place, and those of its neighbours; nothing
in them depends on a language. Each becomes a row of a table with a weight for every tag.
Read next: task.py, `TagModel`; ../labels/solver.py, which finds the weights.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weft.setting_types import AtLeastOne, Features, Positive, Section, Whole
from weft.store import jsonfile

_LETTER = {"Lu": "X", "Lt": "X", "Ll": "x", "Lo": "o", "Lm": "o", "Nd": "9"}
NEIGHBOUR_ENDINGS = (2, 3)
"""Lengths of the endings of a neighbour that are features."""

FIRST = 10**6
"""The place of the first word itself, whose capital letter means less."""

PENALTIES = (4.0, 1.0, 0.25, 0.0625)
"""Those tried if the recipe names none."""

FILE = "tokenizer.features.json"
KEPT_WORDS = 200_000
"""Maximum number of words whose features are kept: text repeats itself."""


@dataclass(frozen=True, kw_only=True)
class TagFeatures(Section):
    """A linear-chain CRF over features of words.

    Args:
        affixes: the longest beginning and ending of a word that is a feature, in letters; 0 for none.
        window: number of words on each side whose form, ending and shape are features too.
        min_count: number of training words that a feature must have.
        penalty: half of it times the sum of the squared weights is added to the loss; null chooses it on the
            validation sentences.
        alone: whether this is the model; false adds its scores to those of a network with a CRF, which learns
            beside it.
        size: numbers of a vector for each feature, whose sum that network reads beside words and letters.
    """

    affixes: Whole = 4
    window: Whole = 1
    min_count: AtLeastOne = 1
    penalty: Positive | None = None
    alone: bool = True
    size: Features = 64


class SavedFeatures(jsonfile.Schema):
    """A tokenizer.features.json."""

    names: list[str]


class WordFeatures:
    """The features that a model knows.

    Args:
        how: which features there are.
        kept: their names, numbered from 1; 0 is padding and every unknown feature.
    """

    def __init__(self, how: TagFeatures, kept: Sequence[str]) -> None:
        self.how = how
        self.kept = list(kept)
        self._number = {name: number for number, name in enumerate(self.kept, 1)}
        self._known: dict[tuple[str | None, int], list[int]] = {}

    @classmethod
    def learn(cls, how: TagFeatures, sentences: Iterable[Sequence[str]]) -> "WordFeatures":
        """Count the features of training sentences and keep the frequent ones."""
        seen = Counter(
            (word, place)
            for sentence in sentences
            for around in _around(sentence, how)
            for word, place in around
        )
        counts: Counter[str] = Counter()
        for (word, place), count in seen.items():
            for name in features_of(word, place, how.affixes):
                counts[name] += count
        return cls(how, sorted(name for name, count in counts.items() if count >= how.min_count))

    @property
    def num_rows(self) -> int:
        """Rows of a table of them."""
        return len(self.kept) + 1

    def numbers(self, sentence: Sequence[str]) -> list[list[int]]:
        """The known features of each word."""
        around = _around(sentence, self.how)
        return [sorted(number for each in one for number in self._at(*each)) for one in around]

    def read(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Sentences [B] as the numbers of their features [B, S, K], and their mask [B, S]."""
        rows = [self.numbers(sentence) for sentence in sentences]
        longest = max(map(len, rows))
        most = max((len(word) for row in rows for word in row), default=1)
        found = np.zeros((len(rows), longest, most), dtype=np.int64)
        for row, words in zip(found, rows, strict=True):
            for place, word in enumerate(words):
                row[place, : len(word)] = word
        mask = np.arange(longest) < np.array([len(row) for row in rows])[:, None]
        return torch.from_numpy(found), torch.from_numpy(mask)

    def save(self, run: Path) -> None:
        """Write the names into the run, atomically."""
        jsonfile.save(run / FILE, {"names": self.kept})

    @classmethod
    def load(cls, run: Path, how: TagFeatures) -> "WordFeatures":
        """Read what `save` wrote."""
        remedy = "this is not a run of a linear tagger, or training has not started"
        return cls(how, jsonfile.load(run / FILE, SavedFeatures, remedy).names)

    def _at(self, word: str | None, place: int) -> list[int]:
        known = self._known.get((word, place))
        if known is None:
            names = features_of(word, place, self.how.affixes)
            known = [self._number[name] for name in names if name in self._number]
            if len(self._known) >= KEPT_WORDS:
                self._known.clear()
            self._known[word, place] = known
        return known


def _around(sentence: Sequence[str], how: TagFeatures) -> Iterable[list[tuple[str | None, int]]]:
    """Each word with its neighbours and their places; None beyond the sentence."""
    padded = [None] * how.window + list(sentence) + [None] * how.window
    for at in range(len(sentence)):
        around = [(padded[at + n], n - how.window) for n in range(2 * how.window + 1)]
        yield [*around, (sentence[0], FIRST)] if at == 0 else around


def features_of(word: str | None, place: int, affixes: int) -> list[str]:
    """The names of the features that a word has at a place before (-1) or after (1) the tagged one, or there.

    Example:
        >>> features_of("Cats", 0, 2)
        ['any', 'word=cats', 'shape=Xx', 'begins=c', 'ends=s', 'begins=ca', 'ends=ts']
        >>> features_of(None, -1, 2)
        ['-1 nothing']
    """
    if word is None:
        return [f"{place:+} nothing"]
    word = unicodedata.normalize("NFC", word)
    form, shape = f"word={word.lower()}", f"shape={shape_of(word)}"
    small = word.lower()
    if place == FIRST:
        return [f"first {shape}"]
    if place:
        endings = [f"ends={small[-n:]}" for n in NEIGHBOUR_ENDINGS if len(small) >= n]
        return [f"{place:+} {name}" for name in (form, shape, *endings)]
    found = ["any", form, shape]
    for n in range(1, min(affixes, len(small)) + 1):
        found += [f"begins={small[:n]}", f"ends={small[-n:]}"]
    return found


def shape_of(word: str) -> str:
    """Capital letters as X, small ones as x, letters without case as o, digits as 9; each run once.

    Example:
        >>> [shape_of(word) for word in ("iPhone", "3.50", "don't", "日本")]
        ['xXx', '9.9', "x'x", 'o']
    """
    letters = (_LETTER.get(unicodedata.category(one), one) for one in word if not unicodedata.combining(one))
    return "".join(one for one, _ in groupby(letters))
