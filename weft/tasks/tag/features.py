"""Features of words, written by hand: what a linear tagger reads instead of vectors.

They are the word, its beginnings and endings, its shape and its place, and those of its neighbours; nothing
in them depends on a language. Each becomes a row of a table with a weight for every tag.
SummedTagger adds the scores of such a CRF to those of a network: each is right where the other is not. The
network is trained by itself, as the linear CRF has learnt the same sentences by heart.
Read next: task.py, `TagModel`; ../labels/solver.py, which finds the weights.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.masks import fill, to_device
from weft.models import Labeller
from weft.nn.embed.grams import FeatureTable
from weft.nn.embed.words import Spelled, Words
from weft.nn.heads.crf import Crf
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Dropout
from weft.setting_types import AtLeastOne, Features, Positive, Section, Whole
from weft.store import jsonfile
from weft.tasks.vocabulary import Lexicon

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
    """The features that a model knows: names, numbered from 1; 0 is padding and every unknown one."""

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
    """The features of a word at a place before (-1) or after (1) the tagged one, or there.

    Example:
        >>> features_of("Cats", 0, 2)
        ['any', 'word=cats', 'shape=Xx', 'begins=c', 'ends=s', 'begins=ca', 'ends=ts']
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


class SpelledWithFeatures(NamedTuple):
    """Sentences as a lexicon spells them, and the features of their words."""

    spelled: Spelled
    numbers: Tensor  # [B, S, K] int64, 0 is padding

    @classmethod
    def read(
        cls, lexicon: Lexicon, features: WordFeatures, sentences: Sequence[Sequence[str]]
    ) -> tuple["SpelledWithFeatures", Tensor]:
        """Sentences [B], and their mask [B, S]."""
        spelled, mask = lexicon.spell(sentences)
        return cls(spelled, features.read(sentences)[0]), mask

    def to(self, device: torch.device) -> "SpelledWithFeatures":
        """Move to a device."""
        return to_device(self, device)

    def filled(self, columns: int) -> "SpelledWithFeatures":
        """The same sentences with more columns."""
        numbers = fill(self.numbers, len(self.numbers), columns)
        return SpelledWithFeatures(self.spelled.filled(columns), numbers)


class WithFeatures(nn.Module):
    """[words(w); e(w)] at each position, where e(w) sums a vector for each feature of the word."""

    def __init__(self, words: Words, num_features: int, size: int, *, dropout: float) -> None:
        super().__init__()
        self.words = words
        self.table = FeatureTable(num_features, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.dropout = Dropout(dropout)
        self.size = words.size + size

    def forward(self, given: SpelledWithFeatures) -> Tensor:
        """Sentences to [B, S, size]."""
        return torch.cat([self.words(given.spelled), self.dropout(self.table(given.numbers))], -1)


class SummedTagger(Labeller):
    """A network and a linear CRF over the same sentences, whose weights stay as they are."""

    def __init__(self, network: Labeller, linear: Labeller) -> None:
        assert isinstance(network.head, Crf)
        assert isinstance(linear.head, Crf)
        super().__init__(network.embed, network.encoder, SummedCrf(network.head, linear.head))
        self.table = linear.embed.requires_grad_(False)
        self.linear_encoder = linear.encoder

    def solve(self, by: Callable[[Labeller], object]) -> None:
        """Fill the linear CRF, whose weights then stay."""
        assert isinstance(self.head, SummedCrf)
        linear = Labeller(self.table, self.linear_encoder, self.head.linear).requires_grad_(True)
        by(linear)
        linear.requires_grad_(False)

    def features(self, source: SpelledWithFeatures, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the network beside the linear scores of each tag, [B, S, D + C], and the mask."""
        h, mask = super().features(source, mask)
        return torch.cat([h, self.table(source.numbers)], -1), mask


class SummedCrf(Head):
    """Two CRFs whose scores are added, except in training; its input is [h; scores of the second]."""

    def __init__(self, own: Crf, linear: Crf) -> None:
        super().__init__()
        self.own = own
        self.linear = linear.requires_grad_(False)
        self.in_size = own.in_size + linear.in_size

    def both(self, h: Tensor) -> tuple[Crf, Tensor]:
        """A CRF with the sums of transitions, and the sums of scores [.., T, C] that it reads."""
        scores = self.own.emit(h[..., : self.own.in_size]) + h[..., self.own.in_size :]
        found = Crf(self.linear.in_size, self.linear.in_size)
        found.emit = nn.Identity()
        for name in ("transitions", "begin", "end"):
            sums = self.own.get_parameter(name) + self.linear.get_parameter(name)
            setattr(found, name, nn.Parameter(sums, requires_grad=False))
        return found, scores

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities of each tag at each position, [.., T, C], without padding."""
        crf, scores = self.both(h)
        return crf(scores)  # type: ignore[no-any-return]

    def marginals(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """log p(y_t = c | x), [B, T, C]."""
        crf, scores = self.both(h)
        return crf.marginals(scores, mask)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """-log p(target | x) of the sum; in training of the network alone."""
        if self.training:
            return self.own.loss(h[..., : self.own.in_size], target, mask)
        crf, scores = self.both(h)
        return crf.loss(scores, target, mask)

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """The most probable tag sequence, [B, T]."""
        crf, scores = self.both(h)
        return crf.best(scores, mask)
