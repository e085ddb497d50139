"""Texts as a classifier reads them: tokens, or the items of a bag; and classes as numbers.

Read next: items.py, what a bag counts; predictor.py, which uses it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.nn.embed.contextual import Twice
from weft.nn.embed.grams import Grams
from weft.store import jsonfile
from weft.tasks.classify.data import names_of
from weft.tasks.classify.items import Items
from weft.tasks.classify.model import Bag
from weft.tasks.classify.several import USUAL
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.shared.writing.batch import pad
from weft.text.loading import load_vocabulary
from weft.text.normalise import words_of
from weft.text.vocabulary import Vocabulary


class SavedReader(jsonfile.Form):
    """A tokenizer.classes.json: an item is an n-gram of tokens, or of letters."""

    classes: Annotated[list[str], jsonfile.Meta(min_length=1)]
    items: list[list[int | str]] = jsonfile.field(default_factory=list)
    documents: list[jsonfile.Count] = jsonfile.field(default_factory=list)
    finer: list[tuple[str, str]] = jsonfile.field(default_factory=list)
    texts: jsonfile.Count | None = None


class Decided(NamedTuple):
    """The class of a text, or its labels."""

    label: str  # several are joined by the separator
    probs: np.ndarray  # [C] in the order of the classes
    names: Sequence[str] | None = None  # the labels, where a text may have several

    @property
    def prob(self) -> float:
        """The highest probability; that of the class, if there is one."""
        return float(self.probs.max())


class Reader:
    """Texts to batches.

    Args:
        vocabulary: of tokens.
        classes: in the order of their numbers.
        items: of a bag; None for a model that reads tokens in order.
        max_length: number of tokens that are read of a text, and of words whose letters are read.
        separator: between the labels of a text; None if each has one class.
        finer: pairs of a class and one of its subclasses; empty if classes have none.

    Attributes:
        thresholds: probability from which on each label is given, where a text may have several.
        context: spells sentences for a model of words in context, if there is one.
        temperature: divides the log-probabilities of the classes; see ../labels/calibration.py.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        *,
        items: Items | None,
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
    ) -> "Reader":
        """Learn the classes and the items; among equally frequent items, those seen first.

        A class all of whose texts lack a subclass is its own.
        """
        labels = list(labels)
        classes = sorted({name for label in set(labels) for name in names_of(label, separator)})
        pairs = {pair for pair in zip(labels, finer, strict=False) if pair[1]}
        if pairs:
            pairs |= {(name, "") for name in {*classes} - {name for name, _ in pairs}}
        given: dict[str, Any] = {"max_length": max_length, "separator": separator, "finer": sorted(pairs)}
        reader = cls(vocabulary, classes, items=None, **given)
        if bag is not None:
            reader.items = Items.learn(bag, reader.encode(texts), map(reader.split, texts))
        return reader

    @property
    def num_items(self) -> int:
        """Rows of the model's table."""
        return len(self.vocabulary) if self.items is None else len(self.items.kept) + 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text that are read."""
        return [tokens[: self.max_length] for tokens in self.vocabulary.encode_batch(texts)]

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

    def decide(self, probs: np.ndarray) -> Decided:
        """The likeliest class, or every label above its threshold."""
        if self.separator is None:
            return Decided(self.classes[int(probs.argmax())], probs)
        names = [self.classes[n] for n in np.flatnonzero(probs >= np.array(self.thresholds))]
        return Decided(self.separator.join(names), probs, names)

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
        target = self.targets(labels)
        if self.finer:  # see Nested.loss
            pairs = zip(labels, finer or [""] * len(labels), strict=True)
            known = torch.tensor([self._subclass.get(pair, -1) for pair in pairs])
            target = torch.where(known < 0, len(self.finer) + target, known)
        return LabelBatch(source, mask, target, len(rows))

    def save(self, run: Path) -> None:
        """Write classes and items into the run, beside the vocabulary."""
        plain: dict[str, Any] = {"classes": self.classes, "items": []}
        if self.finer:
            plain["finer"] = self.finer
        if self.items is not None:
            plain["items"] = self.items.kept
            if self.items.bag.weight == "tfidf":
                plain |= {"documents": self.items.documents, "texts": self.items.total}
        jsonfile.save(run / "tokenizer.classes.json", plain)

    @classmethod
    def load(cls, run: Path, *, bag: Bag | None, max_length: int, separator: str | None = None) -> "Reader":
        """Read what `save` wrote.

        Raises:
            CheckpointError: it is missing or damaged.
        """
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
            items = Items(
                bag, [tuple(item) for item in saved.items], counts if rare else (), saved.texts or 0
            )
        vocabulary = load_vocabulary(run / "tokenizer.json")
        if saved.finer and {name for name, _ in saved.finer} != set(saved.classes):
            raise CheckpointError(f"{path}: expected a subclass of each class, got others; {remedy}")
        given: dict[str, Any] = {"max_length": max_length, "separator": separator, "finer": saved.finer}
        return cls(vocabulary, saved.classes, items=items, **given)
