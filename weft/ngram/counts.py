"""N-grams as numbers: every distinct one of each order once, sorted, with what it is made of.

An n-gram is named by its place in its order's table. Its key is (number of its first n-1 tokens) * V + last
token, so that a table of any order is one sorted array of int64, and all n-grams that continue one context
stand side by side. Everything is sorting and counting of whole arrays. Read next: kneser_ney.py.
"""

from typing import NamedTuple

import numpy as np

from weft.errors import DataError

ABSENT = -1


class Level(NamedTuple):
    """The distinct n-grams of one order, M of them."""

    keys: np.ndarray  # [M] int64, sorted: context * V + token
    suffix: np.ndarray  # [M] the (n-1)-gram that is left when the first token goes
    counts: np.ndarray  # [M] how often it was seen
    begins: np.ndarray  # [M] bool, whether its first token is <s>


def count(tokens: np.ndarray, *, size: int, order: int, start: int) -> list[Level]:
    """The n-grams of orders 1 to `order`; none reaches over a <s>.

    Args:
        tokens: [N] int; each sentence (or the whole text, if it is read as one) begins with `start`.
        size: V; tokens are below it.
        order: of the longest n-grams.
        start: <s>.

    Raises:
        DataError: no token follows a <s>.

    Example:
        >>> levels = count(np.array([0, 1, 2, 0, 1]), size=3, order=2, start=0)
        >>> levels[1].keys.tolist(), levels[1].counts.tolist()
        ([1, 5], [2, 1])
    """
    tokens = np.asarray(tokens, np.int64)
    if not len(tokens) or tokens[0] != start or (tokens == start).all():
        raise DataError("n-grams are counted of texts that begin with <s> and hold at least one token more")
    places = np.arange(len(tokens))
    since = places - np.maximum.accumulate(np.where(tokens == start, places, 0))  # tokens since <s>
    own = np.bincount(tokens, minlength=size)
    own[start] = 0  # <s> is never predicted
    numbers = tokens.copy()
    first = np.arange(size) == start
    levels = [Level(np.arange(size), np.zeros(size, np.int64), own, first)]
    for length in range(2, order + 1):
        here = np.flatnonzero(since >= length - 1)
        keys, at, inverse, counts = np.unique(
            numbers[here - 1] * size + tokens[here],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        begins = since[here[at]] == length - 1
        levels.append(Level(keys, numbers[here[at]], counts, begins))
        longer = np.full(len(tokens), ABSENT)
        longer[here] = inverse
        numbers = longer
    return levels


def find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The places of keys in a sorted table, ABSENT where it has none."""
    if not len(keys):
        return np.full(wanted.shape, ABSENT)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, ABSENT)
