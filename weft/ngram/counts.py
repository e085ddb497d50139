"""N-gram counts: one sorted table of distinct n-grams per order.

An n-gram's number is its row in the table of its order. Its key is (number of its first n-1 tokens) * V +
last token, so every table is one sorted array of int64, and all n-grams with the same context are adjacent.
Counting uses whole-array operations only. Read next: kneser_ney.py.
"""

from typing import NamedTuple

import numpy as np

from weft.errors import DataError

ABSENT = -1


class Level(NamedTuple):
    """The M distinct n-grams of one order."""

    keys: np.ndarray  # [M] int64, sorted: context * V + token
    suffix: np.ndarray  # [M] number of the (n-1)-gram without the first token
    counts: np.ndarray  # [M] occurrences
    begins: np.ndarray  # [M] bool, True if the first token is <s>


def count(tokens: np.ndarray, *, size: int, order: int, start: int) -> list[Level]:
    """Count the n-grams of orders 1 to `order`; none crosses a <s>.

    Args:
        tokens: [N] int < V; each sentence (or the whole text, if read as one) begins with `start`.

    Example:
        >>> levels = count(np.array([0, 1, 2, 0, 1]), size=3, order=2, start=0)
        >>> levels[1].keys.tolist(), levels[1].counts.tolist()
        ([1, 5], [2, 1])
    """
    tokens = np.asarray(tokens, np.int64)
    if not len(tokens) or tokens[0] != start or (tokens == start).all():
        raise DataError("expected texts that begin with <s> and have at least one more token")
    places = np.arange(len(tokens))
    since = places - np.maximum.accumulate(np.where(tokens == start, places, 0))  # tokens since <s>
    own = np.bincount(tokens, minlength=size)
    own[start] = 0  # <s> is never predicted
    numbers = tokens.copy()
    first = np.arange(size) == start
    levels = [Level(np.arange(size), np.zeros(size, np.int64), own, first)]
    for length in range(2, order + 1):
        ends = np.flatnonzero(since >= length - 1)
        keys, at, inverse, counts = np.unique(
            numbers[ends - 1] * size + tokens[ends],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        begins = since[ends[at]] == length - 1
        levels.append(Level(keys, numbers[ends[at]], counts, begins))
        longer = np.full(len(tokens), ABSENT)
        longer[ends] = inverse
        numbers = longer
    return levels


def find_rows(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The rows of keys in a sorted table; ABSENT for missing keys."""
    if not len(keys):
        return np.full(wanted.shape, ABSENT)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, ABSENT)
