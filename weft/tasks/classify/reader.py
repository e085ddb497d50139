"""How a classifier reads texts and labels: as tokens, or as the items of a bag, which it learns and saves.

Read next: predictor.py.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.labelled import BORDER, NO_BORDER
from weft.errors import CheckpointError
from weft.metrics.naive_bayes import grams
from weft.nn.embed.contextual import Twice
from weft.nn.embed.grams import Grams
from weft.nn.embed.neighbours import ngrams
from weft.nn.embed.tokens import idf
from weft.store import jsonfile
from weft.tasks.classify.data import names_of
from weft.tasks.classify.model import USUAL, Bag
from weft.tasks.labels.base import LabelBatch
from weft.tasks.labels.solver import Design
from weft.tasks.reused import Frame, framed
from weft.tasks.seq2seq.batch_search import pad
from weft.text.characters import words_of
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import EOS, SOS, Vocabulary

Item = tuple[Hashable, ...]
"""Numbers of neighbouring tokens, or a letter n-gram: ("<qu",) begins a word."""

_CACHE = 200_000  # words whose letter n-grams are cached: text repeats itself


class BagItems:
    """The known items of a bag.

    Args:
        kept: the known items, word n-grams before letter n-grams; numbered from 1, 0 is padding.
        documents: the number of training texts that contain each item.
    """

    def __init__(self, bag: Bag, kept: Sequence[Item], documents: Sequence[int] = (), total: int = 0) -> None:
        self.bag = bag
        self.kept = list(kept)
        self.documents = list(documents)
        self.total = total
        self._number = {item: number for number, item in enumerate(self.kept, 1)}
        spelled = (number for item, number in self._number.items() if isinstance(item[0], str))
        self._letters = min(spelled, default=len(self.kept) + 1)  # the first letter n-gram
        self._of_word: dict[str, list[int]] = {}
        rarity = idf(torch.tensor([0, *self.documents]), total)
        self._rarity = rarity.double().numpy()

    @classmethod
    def learn(
        cls,
        bag: Bag,
        rows: Iterable[Sequence[int]],
        words: Iterable[Sequence[str]],
        more: Iterable[int] = (),
    ) -> "BagItems":
        """The most frequent items of the training texts; among equally frequent ones, those seen first.

        Args:
            more: tokens that are items however rare.
        """
        runs: Counter[Item] = Counter()
        letters: Counter[Item] = Counter()
        total = 0
        for row, split in zip(rows, words, strict=True):
            total += 1
            runs.update(dict.fromkeys(_runs(row, bag)).keys())
            if bag.letters is not None:
                here = dict.fromkeys(gram for word in dict.fromkeys(split) for gram in _spelled(word, bag))
                letters.update(here.keys())
        kept = [*_frequent(runs, bag.min_count, bag.size)]
        there = {item for item, _ in kept}
        kept += [((token,), runs[token,]) for token in more if (token,) not in there]
        kept += _frequent(letters, bag.min_count, bag.letters_size)
        return cls(bag, [item for item, _ in kept], [count for _, count in kept], total)

    def counts(self) -> str:
        """How many of each kind there are, in words."""
        bag, runs = self.bag, self._letters - 1
        said = f"{runs:,} " + ("tokens" if bag.ngrams == 1 else f"n-grams of up to {bag.ngrams} tokens")
        if bag.letters is None:
            return said
        return f"{said}, {len(self.kept) - runs:,} of {bag.letters[0]} to {bag.letters[1]} letters"

    def number(self, item: Item) -> int:
        """The number of an item; 0 if it is unknown."""
        return self._number.get(item, 0)

    def counted(self, tokens: Sequence[int], words: Sequence[str]) -> Counter[int]:
        """The count of each known item in a text, given its tokens and its words between spaces."""
        known = self._number
        found = Counter(known[item] for item in _runs(tokens, self.bag) if item in known)
        if self.bag.letters is not None:
            for word in words:
                found.update(self.of_word(word))
        return found

    def of_word(self, word: str) -> list[int]:
        """The known letter n-grams of a word, with repetitions; none where the bag has no letters."""
        numbers = self._of_word.get(word)
        if numbers is None:
            spelled = () if self.bag.letters is None else _spelled(word, self.bag)
            numbers = [self._number[item] for item in spelled if item in self._number]
            if len(self._of_word) >= _CACHE:
                self._of_word.clear()
            self._of_word[word] = numbers
        return numbers

    def weighed(self, counts: Counter[int]) -> np.ndarray:
        """The weight of each item of a text, in the order of `counts`, float32.

        presence: 1; count: n_i; frequency: n_i / sum_j n_j; tfidf: (1 + ln n_i) idf_i, divided by the length
        of the text's vector of word n-grams, or of letter n-grams. idf_i = ln((1 + N) / (1 + N_i)) + 1, where
        N_i of N training texts contain i.

        Source: Salton & Buckley 1988 for tfidf, with scikit-learn's smoothing. A text has many more letter
        n-grams than word n-grams: with one length for both, the words would hardly count.
        """
        values = np.array(list(counts.values()), dtype=np.float64)
        if self.bag.weight == "presence":
            values = np.ones_like(values)
        elif self.bag.weight == "frequency":
            values = values / max(1.0, float(values.sum()))
        elif self.bag.weight == "tfidf":
            numbers = np.array(list(counts), dtype=np.int64)
            values = (1 + np.log(values)) * self._rarity[numbers]
            for part in (numbers < self._letters, numbers >= self._letters):
                values[part] /= max(1e-12, float(np.sqrt(np.square(values[part]).sum())))
        return values.astype(np.float32)


def _runs(tokens: Sequence[int], bag: Bag) -> list[Item]:
    """N-grams of tokens; with edges also those with SOS before and EOS after them, but neither alone."""
    if not bag.edges:
        return grams(tokens, bag.ngrams)
    return [item for item in grams([SOS, *tokens, EOS], bag.ngrams) if item not in ((SOS,), (EOS,))]


def _spelled(word: str, bag: Bag) -> list[Item]:
    assert bag.letters is not None
    return [(gram,) for gram in ngrams(word, *bag.letters)]


def _frequent(counts: Counter[Item], least: int, most: int) -> list[tuple[Item, int]]:
    found = [(item, count) for item, count in counts.items() if count >= least]
    found.sort(key=lambda each: -each[1])
    return found[: most or None]


class SavedReader(jsonfile.Schema):
    """A tokenizer.classes.json: an item is an n-gram of tokens, or of letters."""

    classes: Annotated[list[str], jsonfile.Meta(min_length=1)]
    items: list[list[int | str]] = jsonfile.field(default_factory=list)
    documents: list[jsonfile.Count] = jsonfile.field(default_factory=list)
    finer: list[tuple[str, str]] = jsonfile.field(default_factory=list)
    texts: jsonfile.Count | None = None
    border: str = NO_BORDER


class LabelDecision(NamedTuple):
    """The class of a text, or its labels."""

    label: str  # several are joined by the separator
    probs: np.ndarray  # [C] in the order of the classes
    names: Sequence[str] | None = None  # the labels, where a text may have several

    @property
    def prob(self) -> float:
        """The highest probability; that of the class, if there is one."""
        return float(self.probs.max())


class LabelReader:
    """Texts to batches.

    Args:
        items: of a bag; None for a model that reads tokens in order.
        max_length: number of tokens that are read of a text, and of words whose letters are read.
        separator: between the labels of a text; None if each has one class.
        finer: pairs of a class and one of its subclasses; empty if classes have none.

    Attributes:
        thresholds: probability from which on each label is given, where a text may have several.
        border: between the columns of a text; runs of before have a space.
        context: spells sentences for a model of words in context, if there is one.
        temperature: divides the log-probabilities of the classes; see ../labels/calibration.py.
        frame: symbols that a text is read between.
    """

    frame: Frame = "none"

    def __init__(
        self,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        *,
        items: BagItems | None,
        max_length: int,
        separator: str | None = None,
        finer: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.separator = separator
        self.thresholds = [USUAL] * len(self.classes)
        self.items = items
        self.max_length = max_length
        self.border = BORDER
        self.context: Callable[[Sequence[Sequence[str]]], Any] | None = None
        self.temperature = 1.0
        self._class = {label: number for number, label in enumerate(self.classes)}
        self.finer = list(finer)
        self._subclass = {pair: number for number, pair in enumerate(self.finer)}

    @classmethod
    def learn(
        cls,
        vocabulary: Vocabulary,
        texts: Sequence[str],
        labels: Iterable[str],
        *,
        bag: Bag | None,
        max_length: int,
        separator: str | None = None,
        finer: Sequence[str] = (),
        vectors: Collection[str] = (),
    ) -> "LabelReader":
        """Learn the classes and the items; among equally frequent items, those seen first.

        A class all of whose texts lack a subclass is its own. Words with given vectors are items.
        """
        labels = list(labels)
        classes = sorted({name for label in set(labels) for name in names_of(label, separator)})
        pairs = {pair for pair in zip(labels, finer, strict=False) if pair[1]}
        if pairs:
            pairs |= {(name, "") for name in {*classes} - {name for name, _ in pairs}}
        given: dict[str, Any] = {"max_length": max_length, "separator": separator, "finer": sorted(pairs)}
        reader = cls(vocabulary, classes, items=None, **given)
        if bag is not None:
            more = [number for number, word in enumerate(reader.words) if word in vectors]
            reader.items = BagItems.learn(bag, reader.encode(texts), map(reader.split, texts), more)
        return reader

    @property
    def words(self) -> list[str]:
        """The vocabulary as given vectors spell it, by number."""
        pieces = self.vocabulary.pieces(range(len(self.vocabulary)))
        return [piece.removeprefix("▁") for piece in pieces]

    @property
    def num_items(self) -> int:
        """Rows of the model's table."""
        return len(self.vocabulary) if self.items is None else len(self.items.kept) + 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text that are read, with the symbols around them."""
        return framed(self.vocabulary.encode_batch(texts), self.max_length, self.frame)

    def split(self, text: str) -> list[str]:
        """The words between spaces whose letters are read, as the vocabulary normalises them."""
        form, lowercase = self.vocabulary.form, self.vocabulary.lowercase
        return words_of(text, form=form, lowercase=lowercase)[: self.max_length]

    def number(self, label: str) -> int:
        """The number of a class; -1 for one that training never saw."""
        return self._class.get(label, -1)

    @property
    def inside(self) -> list[int]:
        """The class of each subclass."""
        return [self._class[name] for name, _ in self.finer]

    def unknown(self, labels: Iterable[str]) -> list[str]:
        """The classes in the labels of texts that training never saw, sorted."""
        return sorted({n for label in set(labels) for n in names_of(label, self.separator)} - {*self.classes})

    def targets(self, labels: Sequence[str]) -> Tensor:
        """[B] the numbers of classes; of several labels [B, C], 1 for each that a text has."""
        if self.separator is None:
            return torch.tensor([self.number(label) for label in labels], dtype=torch.int64)
        found = torch.zeros(len(labels), len(self.classes))
        for row, label in zip(found, labels, strict=True):
            row[[self._class[name] for name in names_of(label, self.separator) if name in self._class]] = 1.0
        return found

    def decide(self, probs: np.ndarray) -> LabelDecision:
        """The likeliest class, or every label above its threshold."""
        if self.separator is None:
            return LabelDecision(self.classes[int(probs.argmax())], probs)
        names = [self.classes[n] for n in np.flatnonzero(probs >= np.array(self.thresholds))]
        return LabelDecision(self.separator.join(names), probs, names)

    def counted(self, tokens: Sequence[int], text: str) -> Counter[int]:
        """The count of each known item of the bag in a text, whose tokens are given too."""
        assert self.items is not None
        words = self.split(text) if self.items.bag.letters is not None else ()
        return self.items.counted(tokens, words)

    def source(self, rows: Sequence[Sequence[int]], texts: Sequence[str]) -> tuple[Any, Tensor]:
        """The tokens of texts, and the texts themselves, as the model reads them, and their mask."""
        if self.items is None:
            tokens, mask = pad(rows)
            if self.context is None:
                return tokens, mask
            words = [self.vocabulary.surface_pieces(text)[: self.max_length] or [" "] for text in texts]
            return Twice(tokens, self.context(words), mask), mask
        counted = [self.counted(row, text) for row, text in zip(rows, texts, strict=True)]
        numbers, mask = pad([list(counts) for counts in counted])
        weights = np.zeros(numbers.shape, dtype=np.float32)
        for row, counts in enumerate(counted):
            weights[row, : len(counts)] = self.items.weighed(counts)
        return Grams(numbers, torch.from_numpy(weights)), mask

    def batch(
        self,
        rows: Sequence[Sequence[int]],
        labels: Sequence[str],
        texts: Sequence[str],
        finer: Sequence[str] = (),
    ) -> LabelBatch:
        """A batch of the tokens of texts, their labels, the texts themselves, and their known subclasses."""
        source, mask = self.source(rows, texts)
        return LabelBatch(source, mask, self.aims(labels, finer), len(rows))

    def aims(self, labels: Sequence[str], finer: Sequence[str] = ()) -> Tensor:
        """What the head's loss reads: numbers of classes, or of known subclasses as in SubclassHead.loss."""
        target = self.targets(labels)
        if not self.finer:
            return target
        pairs = zip(labels, finer or [""] * len(labels), strict=True)
        known = torch.tensor([self._subclass.get(pair, -1) for pair in pairs])
        return torch.where(known < 0, len(self.finer) + target, known)

    def design(
        self, rows: Sequence[Sequence[int]], labels: Sequence[str], texts: Sequence[str], finer: Sequence[str]
    ) -> Design:
        """The same as one sparse matrix, for a solver."""
        assert self.items is not None
        found = (self.counted(row, text) for row, text in zip(rows, texts, strict=True))
        counted = [Counter(dict(sorted(counts.items()))) for counts in found]
        weights = [self.items.weighed(counts) for counts in counted]
        return Design.of([list(one) for one in counted], weights, self.aims(labels, finer), self.num_items)

    def vectors_of_items(self, given: Mapping[str, np.ndarray]) -> tuple[Tensor, Tensor] | None:
        """[K] the items that are words with a given vector, and [K, D] these; None without any."""
        assert self.items is not None
        named = ((self.items.number((token,)), word) for token, word in enumerate(self.words))
        found = {number: given[word] for number, word in named if number and word in given}
        if not found:
            return None
        return torch.tensor(list(found)), torch.from_numpy(np.stack(list(found.values())))

    def save(self, run: Path) -> None:
        """Write classes and items into the run, beside the vocabulary."""
        plain: dict[str, Any] = {"classes": self.classes, "items": [], "border": self.border}
        if self.finer:
            plain["finer"] = self.finer
        if self.items is not None:
            plain["items"] = self.items.kept
            if self.items.bag.weight == "tfidf":
                plain |= {"documents": self.items.documents, "texts": self.items.total}
        jsonfile.save(run / "tokenizer.classes.json", plain)

    @classmethod
    def load(
        cls, run: Path, *, bag: Bag | None, max_length: int, separator: str | None = None
    ) -> "LabelReader":
        """Read what `save` wrote."""
        path = run / "tokenizer.classes.json"
        remedy = "this is not a run of a classifier, or training has not started"
        saved = jsonfile.load(path, SavedReader, remedy)
        items = None
        if bag is not None:
            counts, rare = saved.documents, bag.weight == "tfidf"
            if rare and (saved.texts is None or len(counts) != len(saved.items)):
                raise CheckpointError(f"{path}: expected a number of documents for each item; {remedy}")
            if any(not item or len({type(part) for part in item}) > 1 for item in saved.items):
                raise CheckpointError(f"{path}: expected items of tokens or letters, got another; {remedy}")
            items = BagItems(
                bag, [tuple(item) for item in saved.items], counts if rare else (), saved.texts or 0
            )
        vocabulary = load_vocabulary(run / "tokenizer.json")
        if saved.finer and {name for name, _ in saved.finer} != set(saved.classes):
            raise CheckpointError(f"{path}: expected a subclass of each class, got others; {remedy}")
        given: dict[str, Any] = {"max_length": max_length, "separator": separator, "finer": saved.finer}
        reader = cls(vocabulary, saved.classes, items=items, **given)
        reader.border = saved.border
        return reader
