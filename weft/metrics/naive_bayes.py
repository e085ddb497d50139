"""The baseline for classification: naive Bayes over features of a text, such as words and word pairs.

Read next: baseline.py, the other baselines.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from weft.errors import DataError
from weft.wording import plural


class NaiveBayes:
    """argmax_c log p(c) + sum_i log p(i | c) over the distinct items i of a text that occurred in training.

    p(i | c) = (a + n_ic) / (a V + sum_i n_ic), where n_ic counts the texts of class c that contain i
    (binarised multinomial: an item counts once per text).

    Source: Wang & Manning 2012, section 2.1 (binarised MNB).
    """

    def __init__(
        self, bags: Sequence[Iterable[Hashable]], labels: Sequence[str], *, alpha: float = 1.0
    ) -> None:
        if not bags or len(bags) != len(labels):
            raise DataError(
                f"baseline: expected one label for each text, got {plural(len(bags), 'text')} and "
                f"{plural(len(labels), 'label')}"
            )
        self.classes = sorted(set(labels))
        self.items: dict[Hashable, int] = {}
        numbers = {label: place for place, label in enumerate(self.classes)}
        rows, columns = [], []
        for bag, label in zip(bags, labels, strict=True):
            for item in dict.fromkeys(bag):
                rows.append(self.items.setdefault(item, len(self.items)))
                columns.append(numbers[label])
        self.alpha = alpha
        self._counts = np.zeros((len(self.items), len(self.classes)))  # n_ic
        np.add.at(self._counts, (np.array(rows, np.int64), np.array(columns, np.int64)), 1)
        counts = self._counts + alpha
        self.logp = np.log(counts) - np.log(counts.sum(0))  # [V, C]
        self._class_counts = np.bincount([numbers[label] for label in labels], minlength=len(self.classes))
        self.prior = np.log(self._class_counts / len(labels))  # [C]

    def logits(self, bag: Iterable[Hashable]) -> np.ndarray:
        """[C] log p(c) + sum_i log p(i | c)."""
        known = [self.items[item] for item in dict.fromkeys(bag) if item in self.items]
        total: np.ndarray = self.prior + self.logp[known].sum(0)
        return total

    def predict(self, bags: Iterable[Iterable[Hashable]]) -> list[str]:
        """The most probable class of each text; ties go to the first class."""
        return [self.classes[int(self.logits(bag).argmax())] for bag in bags]

    def left_out(self, bag: Iterable[Hashable], label: str) -> str:
        """The most probable class of a training text under a model of all other training texts.

        Subtracting the text's own counts gives exactly the model fitted without it.
        """
        known = np.array([self.items[item] for item in dict.fromkeys(bag)], np.int64)
        own, counts = self.classes.index(label), self._counts[known]  # [I, C]
        single = counts.sum(1) == 1  # seen only in this text: unknown without it
        rest = counts[~single]
        rest[:, own] -= 1
        totals, class_counts = self._counts.sum(0), self._class_counts.astype(float)
        totals[own] -= len(known)
        class_counts[own] -= 1
        size = len(self.items) - int(single.sum())
        below = np.log(np.maximum(totals + self.alpha * size, 1e-300))
        with np.errstate(divide="ignore"):
            total = np.log(class_counts) + np.log(rest + self.alpha).sum(0) - len(rest) * below
        return self.classes[int(total.argmax())]


def grams(tokens: Sequence[Hashable], longest: int) -> list[tuple[Hashable, ...]]:
    """All n-grams of 1 to `longest` tokens."""
    sizes = range(1, longest + 1)
    return [tuple(tokens[at : at + size]) for size in sizes for at in range(len(tokens) - size + 1)]
