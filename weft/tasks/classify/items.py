"""The items of a bag: n-grams of words and of letters, which of them are known, and how they are weighted.

Read next: reader.py, which makes batches of them; ../../nn/embed/grams.py, the model that reads them.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import torch

from weft.metrics.naive_bayes import grams
from weft.nn.embed.subwords import ngrams
from weft.nn.embed.weighted import idf
from weft.tasks.classify.model import Bag
from weft.text.vocabulary import EOS, SOS

Item = tuple[Hashable, ...]
"""Numbers of neighbouring tokens, or a letter n-gram: ("<qu",) begins a word."""

_CACHE = 200_000  # words whose letter n-grams are cached: text repeats itself


class Items:
    """The known items of a bag.

    Args:
        bag: which items there are, and their weights.
        kept: the known items, word n-grams before letter n-grams; numbered from 1, 0 is padding.
        documents: the number of training texts that contain each item.
        total: number of training texts.
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
    def learn(cls, bag: Bag, rows: Iterable[Sequence[int]], words: Iterable[Sequence[str]]) -> "Items":
        """The most frequent items of the training texts; among equally frequent ones, those seen first.

        Args:
            bag: how many word n-grams and how many letter n-grams are kept.
            rows: the tokens of each text.
            words: the words between spaces of each text.
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
        kept += _frequent(letters, bag.min_count, bag.letters_size)
        return cls(bag, [item for item, _ in kept], [count for _, count in kept], total)

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
