"""IBM model 1: the probability that a target token is the translation of a source token.

Expectation maximisation over all links between the tokens of a pair; the order of tokens does not matter.
Source: Brown et al. 1993, section 4.1; Dyer, Chahuneau & Smith 2013 (fast_align) align by the same model with
a preference for the diagonal. Read next: shortlist.py, which needs the probabilities.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

ROUNDS = 5
"""Of expectation maximisation; Brown et al. note that few suffice."""
LINKS = 40_000_000
"""Links that are read: 100,000 pairs of 20 tokens. Of more pairs, evenly spaced ones are read."""
CHUNK = 2_000_000
"""Links handled at a time."""

Pair = tuple[np.ndarray, np.ndarray]


class PairCorpus(Protocol):
    """Training pairs, such as those of joined.py."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Pair: ...

    @property
    def lengths(self) -> Sequence[np.ndarray]:
        """Lengths [N, 2] of source and target, in parts."""


class Probabilities(NamedTuple):
    """p(target | source) of the tokens that occur in a pair together, by source and then by target."""

    source: np.ndarray  # [L]
    target: np.ndarray  # [L]
    prob: np.ndarray  # [L], of each source token their sum is 1


class _Links(NamedTuple):
    """The links of some pairs; those of a target token lie side by side."""

    entry: np.ndarray  # [N] int32, the number of the pair of tokens
    first: np.ndarray  # [P] of each target token, its first link
    number: np.ndarray  # [P] and how many it has


def probabilities(pairs: PairCorpus, num_source: int, num_target: int) -> Probabilities:
    """The probabilities of model 1 with an empty word, which explains what has no translation.

    Args:
        pairs: tokens of both sides.
        num_source, num_target: sizes of the vocabularies.

    Example:
        >>> from weft.data.model_one import probabilities
        >>> class Two(list):
        ...     lengths = [np.array([[2, 2], [1, 1]])]
        >>> two = Two([(np.array([0, 1]), np.array([1, 2])), (np.array([0]), np.array([1]))])
        >>> found = probabilities(two, 2, 3)
        >>> [(int(s), int(t)) for s, t, p in zip(*found) if p > 0.6]
        [(0, 1), (1, 2)]
    """
    found: list[tuple[np.ndarray, _Links]] = []
    for chunk in _chunks(pairs):
        key, first, count = _flat(chunk, num_source, num_target)
        own, entry = np.unique(key, return_inverse=True)
        found.append((own, _Links(entry.astype(np.int32), first, count)))
    keys = np.sort(np.concatenate([np.empty(0, np.int64), *(own for own, _ in found)]))
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique would hash them, which takes much longer
    places = [np.searchsorted(keys, own).astype(np.int32) for own, _ in found]
    links = [part._replace(entry=place[part.entry]) for place, (_, part) in zip(places, found, strict=True)]
    source, target = keys // num_target, keys % num_target
    prob = np.ones(len(keys))
    for _ in range(ROUNDS):
        counts = np.zeros(len(keys))
        for entry, first, count in links:
            each = prob[entry]
            each /= np.repeat(np.add.reduceat(each, first), count)
            counts += np.bincount(entry, each, len(keys))
        prob = counts / np.bincount(source, counts, num_source + 1)[source]
    real = source < num_source
    return Probabilities(source[real], target[real], prob[real])


def _chunks(pairs: PairCorpus) -> Iterator[list[Pair]]:
    """Pairs with up to about CHUNK links; pairs with an empty side are left out."""
    lengths = np.concatenate([np.zeros((0, 2), np.int64), *pairs.lengths]).astype(np.int64)
    sizes = (lengths[:, 0] + 1) * lengths[:, 1]
    step = max(1, -(-int(sizes.sum()) // LINKS))
    numbers = np.arange(0, len(lengths), step)
    numbers = numbers[(lengths[numbers] > 0).all(1)]
    ends = np.cumsum(sizes[numbers]) // CHUNK
    for part in np.split(numbers, np.flatnonzero(np.diff(ends)) + 1):
        if len(part):
            yield [pairs[int(number)] for number in part]


def _flat(chunk: list[Pair], num_source: int, num_target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The key of every link, source * num_target + target, and the links of each target token."""
    sources = np.concatenate([np.append(source, num_source) for source, _ in chunk]).astype(np.int64)
    targets = np.concatenate([target for _, target in chunk]).astype(np.int64)
    lengths = np.array([[len(source) + 1, len(target)] for source, target in chunk])
    begins = np.cumsum(lengths[:, 0]) - lengths[:, 0]
    count = np.repeat(lengths[:, 0], lengths[:, 1])  # [P]
    first = np.cumsum(count) - count
    begin = np.repeat(begins, lengths[:, 1])
    inside = np.arange(count.sum()) + np.repeat(begin - first, count)
    return sources[inside] * num_target + np.repeat(targets, count), first, count
