"""N-gram counts, and probabilities from them by interpolated modified Kneser-Ney smoothing.

    p(w | u) = (c(u w) - D(c(u w))) / c(u .) + γ(u) p(w | u without its first token)
    γ(u)     = (D_1 N_1(u .) + D_2 N_2(u .) + D_3 N_3+(u .)) / c(u .)
    Y = n_1 / (n_1 + 2 n_2),  D_1 = 1 - 2Y n_2/n_1,  D_2 = 2 - 3Y n_3/n_2,  D_3 = 3 - 4Y n_4/n_3

At the highest order c counts occurrences. Below it, c counts the distinct tokens that precede the n-gram;
n-grams that begin with <s> have no predecessor and keep their occurrences. Each order has its own
discounts. The recursion ends in a uniform 1/V over all tokens that can be predicted, including <unk>.
Source: Chen and Goodman 1998, section 3; details follow KenLM's lmplz (Heafield 2013).
Read next: model.py, which numbers n-grams and answers queries; arpa.py, which writes and reads models.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError, DataError
from weft.ngram.model import ABSENT, NGram, OrderGrams

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts of an order whose counts of counts give no estimate (lmplz --discount_fallback)."""


class Level(NamedTuple):
    """The M distinct n-grams of one order."""

    keys: np.ndarray  # [M] int64, sorted: context * V + token
    suffix: np.ndarray  # [M] number of the (n-1)-gram without the first token
    counts: np.ndarray  # [M] occurrences
    begins: np.ndarray  # [M] bool, True if the first token is <s>


def count(tokens: np.ndarray, *, size: int, order: int, start: int) -> list[Level]:
    """Count the n-grams of orders 1 to `order` in tokens [N] < V; none crosses a <s>.

    Each sentence (or the whole text, if read as one) begins with `start`.
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


class Discounts(NamedTuple):
    """Discounts for n-grams seen once, twice, and three or more times."""

    one: float
    two: float
    more: float
    fallback: bool  # True if they are FALLBACK, because too few n-grams were seen


def kneser_ney(tokens: np.ndarray, *, size: int, order: int, start: int, never: Sequence[int] = ()) -> NGram:
    """Estimate a model from a text.

    Args:
        tokens: [N] int; each sentence begins with `start`. If contexts may cross line ends, the whole text
            is one sentence with one `start` in front.
        size: V.
        order: n.
        start: the token <s>, which is never predicted.
        never: other tokens that are never predicted, such as padding.

    Raises:
        ConfigError: the order is below 1.
        DataError: there are no tokens.

    Example:
        >>> model = kneser_ney(np.array([0, 1, 2, 1, 2, 0, 1]), size=3, order=2, start=0)
        >>> bool(np.isclose(np.exp(model.distribution(np.array([[1]]))).sum(), 1.0))
        True
    """
    if order < 1:
        raise ConfigError(f"order: expected at least 1, got {order}")
    levels = count(tokens, size=size, order=order, start=start)
    seen = adjusted_counts(levels)
    found = [discounts(counts) for counts in seen]
    banned = sorted({start, *never})
    orders: list[OrderGrams] = []
    prob = np.array([1 / (size - len(banned))])
    for number, (level, counts, taken) in enumerate(zip(levels, seen, found, strict=True)):
        context = level.keys // size if number else np.zeros(size, np.int64)
        contexts = len(levels[number - 1].keys) if number else 1
        total = np.bincount(context, counts, contexts)
        cut = np.array([0.0, *taken[:3]])[np.minimum(counts, 3)]
        with np.errstate(invalid="ignore"):
            left = np.bincount(context, cut, contexts) / total  # γ; nan for contexts without continuation
        known = total[context] > 0
        share = np.where(known, (counts - cut) / np.where(known, total[context], 1), 0.0)
        prob = share + np.where(known, left[context], 1.0) * prob[level.suffix]
        if number:
            backoff = np.log(np.where(total > 0, left, 1.0), where=True)
            orders[-1] = orders[-1]._replace(backoff=backoff)
        else:
            prob[banned] = 0.0
        with np.errstate(divide="ignore"):
            orders.append(OrderGrams(level.keys, np.log(prob), np.zeros(len(prob))))
    return NGram(tuple(orders), size=size, start=start, fallback=any(one.fallback for one in found))


def adjusted_counts(levels: list[Level]) -> list[np.ndarray]:
    """The counts c of each order, as smoothing uses them."""
    found = []
    for level, longer in pairwise(levels):
        before = np.bincount(longer.suffix, minlength=len(level.keys))
        found.append(np.where(level.begins, level.counts, before))
    return [*found, levels[-1].counts]


def discounts(counts: np.ndarray) -> Discounts:
    """D_1, D_2, D_3 from the counts of counts; FALLBACK unless each is between 0 and its count."""
    n1, n2, n3, n4 = (int((counts == times).sum()) for times in (1, 2, 3, 4))
    if not min(n1, n2, n3):
        return Discounts(*FALLBACK, fallback=True)
    y = n1 / (n1 + 2 * n2)
    found = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
    if not all(0 <= one <= times for times, one in enumerate(found, 1)):
        return Discounts(*FALLBACK, fallback=True)
    return Discounts(*found, fallback=False)
