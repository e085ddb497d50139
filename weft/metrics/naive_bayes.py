"""The floor of a classifier: naive Bayes over whatever a text is made of, such as its words and word pairs.

Read next: suffix.py, the floor of a tagger.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from weft.errors import DataError


class NaiveBayes:
    """argmax_c log p(c) + sum_i log p(i | c) over the different items i of a text that training knows.

    p(i | c) = (a + n_ic) / (a V + sum_i n_ic), n_ic being the texts of class c that hold i (binarised
    multinomial: an item counts once a text).

    Args:
        bags: the items of each training text.
        labels: their classes.
        alpha: a, added to every count.

    Raises:
        DataError: no texts, or unequal counts.

    Source: Wang & Manning 2012, section 2.1 (binarised MNB).

    Example:
        >>> bayes = NaiveBayes([["good", "film"], ["bad", "film"]], ["+", "-"])
        >>> bayes.predict([["good"], ["bad", "bad"]])
        ['+', '-']
    """

    def __init__(
        self, bags: Sequence[Iterable[Hashable]], labels: Sequence[str], *, alpha: float = 1.0
    ) -> None:
        if not bags or len(bags) != len(labels):
            raise DataError(f"floor: {len(bags):,} texts and {len(labels):,} labels came; give one for each")
        self.classes = sorted(set(labels))
        self.items: dict[Hashable, int] = {}
        numbers = {label: place for place, label in enumerate(self.classes)}
        rows, columns = [], []
        for bag, label in zip(bags, labels, strict=True):
            for item in dict.fromkeys(bag):
                rows.append(self.items.setdefault(item, len(self.items)))
                columns.append(numbers[label])
        counts = np.full((len(self.items), len(self.classes)), alpha)
        np.add.at(counts, (np.array(rows, np.int64), np.array(columns, np.int64)), 1)
        self.logp = np.log(counts) - np.log(counts.sum(0))  # [V, C]
        there = np.bincount([numbers[label] for label in labels], minlength=len(self.classes))
        self.prior = np.log(there / len(labels))  # [C]

    def logits(self, bag: Iterable[Hashable]) -> np.ndarray:
        """[C] log p(c) + sum_i log p(i | c)."""
        known = [self.items[item] for item in dict.fromkeys(bag) if item in self.items]
        total: np.ndarray = self.prior + self.logp[known].sum(0)
        return total

    def predict(self, bags: Iterable[Iterable[Hashable]]) -> list[str]:
        """The likeliest class of each text; of equals the first."""
        return [self.classes[int(self.logits(bag).argmax())] for bag in bags]


def grams(tokens: Sequence[Hashable], longest: int) -> list[tuple[Hashable, ...]]:
    """Runs of 1 to `longest` neighbours.

    Example:
        >>> grams("a b c".split(), 2)
        [('a',), ('b',), ('c',), ('a', 'b'), ('b', 'c')]
    """
    sizes = range(1, longest + 1)
    return [tuple(tokens[at : at + size]) for size in sizes for at in range(len(tokens) - size + 1)]
