"""Texts become what a classifier reads: tokens, or the items of a bag; classes become numbers.

Read next: classifier.py, which uses it.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft import jsonfile
from weft.errors import CheckpointError
from weft.metrics.naive_bayes import grams
from weft.nn.embed.contextual import Twice
from weft.nn.embed.grams import Grams
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.labels.model import Bag
from weft.tasks.pairs.batch import pad
from weft.text.saved import write
from weft.text.vocabulary import Vocabulary


class Reader:
    """Texts to batches.

    Args:
        vocabulary: of tokens.
        classes: in the order of their numbers.
        bag: how the items of a bag are counted; None for a model that reads tokens in order.
        items: the n-grams of the bag, tuples of token numbers.
        max_length: tokens that are read of a text.

    Attributes:
        context: spells sentences for a model of words in context, if there is one.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        *,
        bag: Bag | None,
        items: Sequence[tuple[Hashable, ...]] = (),
        max_length: int,
    ) -> None:
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.bag = bag
        self.items = list(items)
        self.max_length = max_length
        self.context: Callable[[Sequence[Sequence[str]]], Any] | None = None
        self._class = {label: number for number, label in enumerate(self.classes)}
        self._item = {item: number for number, item in enumerate(self.items, 1)}  # 0 is padding

    @classmethod
    def learn(
        cls,
        vocabulary: Vocabulary,
        texts: Sequence[str],
        labels: Iterable[str],
        *,
        bag: Bag | None,
        max_length: int,
    ) -> "Reader":
        """Which classes there are, and which items; of equally frequent ones those seen first."""
        items: list[tuple[Hashable, ...]] = []
        if bag is not None:
            counts: Counter[tuple[Hashable, ...]] = Counter()
            for tokens in vocabulary.encode_batch(texts):
                counts.update(dict.fromkeys(grams(tokens[:max_length], bag.ngrams)).keys())
            kept = [(item, count) for item, count in counts.items() if count >= bag.min_count]
            kept.sort(key=lambda each: -each[1])
            items = [item for item, _ in kept[: bag.size or None]]
        return cls(vocabulary, sorted(set(labels)), bag=bag, items=items, max_length=max_length)

    @property
    def num_items(self) -> int:
        """Rows of the model's table."""
        return len(self.items) + 1 if self.bag is not None else len(self.vocabulary)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text that are read."""
        return [tokens[: self.max_length] for tokens in self.vocabulary.encode_batch(texts)]

    def number(self, label: str) -> int:
        """Of a class; -1 of one that training never saw."""
        return self._class.get(label, -1)

    def counted(self, tokens: Sequence[int]) -> Counter[int]:
        """How often each known item stands in a text."""
        assert self.bag is not None
        found = (self._item.get(item) for item in grams(tokens, self.bag.ngrams))
        return Counter(number for number in found if number is not None)

    def source(self, rows: Sequence[Sequence[int]], texts: Sequence[str]) -> tuple[Any, Tensor]:
        """Tokens of texts, and these texts, to what the model reads, and its mask."""
        if self.bag is None:
            tokens, mask = pad(rows)
            if self.context is None:
                return tokens, mask
            words = [self.vocabulary.written(text)[: self.max_length] or [" "] for text in texts]
            return Twice(tokens, self.context(words), mask), mask
        counted = [self.counted(row) for row in rows]
        numbers, mask = pad([list(counts) for counts in counted])
        weights = np.zeros(numbers.shape, dtype=np.float32)
        for row, counts in enumerate(counted):
            values = np.array(list(counts.values()), dtype=np.float32)
            if self.bag.weight == "presence":
                values = np.ones_like(values)
            elif self.bag.weight == "frequency":
                values = values / max(1.0, float(values.sum()))
            weights[row, : len(values)] = values
        return Grams(numbers, torch.from_numpy(weights)), mask

    def batch(
        self, rows: Sequence[Sequence[int]], classes: Sequence[int], texts: Sequence[str]
    ) -> LabelBatch:
        """Tokens of texts, the numbers of their classes, and these texts."""
        source, mask = self.source(rows, texts)
        return LabelBatch(source, mask, torch.tensor(classes, dtype=torch.int64), len(rows))

    def save(self, run: Path) -> None:
        """Keep classes and items in the run; the vocabulary is kept beside them."""
        write(run / "tokenizer.classes.json", {"classes": self.classes, "items": self.items})

    @classmethod
    def load(cls, run: Path, *, bag: Bag | None, max_length: int) -> "Reader":
        """Read what `save` wrote.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        path = run / "tokenizer.classes.json"
        try:
            plain = jsonfile.read(path)
            classes, items = (
                [str(label) for label in plain["classes"]],
                [tuple(item) for item in plain["items"]],
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{path}: is missing or damaged ({type(error).__name__}); this is no run of a classifier, or "
                "training has not begun"
            ) from None
        vocabulary = Vocabulary.load(run / "tokenizer.json")
        return cls(vocabulary, classes, bag=bag, items=items, max_length=max_length)
