"""The target tokens worth trying for a source: likely translations of its tokens, and frequent ones.

Source: Jean et al. 2015, section 3.4, with IBM model 1; Devlin 2017 and Marian's lexical shortlist do the
same. Read next: ../search/candidates.py.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.data.store import JoinedStores
from weft.store import files, jsonfile

ROUNDS = 5  # of expectation maximisation; Brown et al. note that few suffice
LINKS = 40_000_000
"""Links that are read: 100,000 pairs of 20 tokens. Of more pairs, evenly spaced ones are read."""
CHUNK = 2_000_000  # links handled at a time

Pair = tuple[np.ndarray, np.ndarray]


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


def probabilities(pairs: JoinedStores, num_source: int, num_target: int) -> Probabilities:
    """The probabilities of IBM model 1 with an empty word, which explains what has no translation.

    Expectation maximisation over all links between the tokens of a pair; the order of tokens does not matter.

    Source: Brown et al. 1993, section 4.1; Dyer, Chahuneau & Smith 2013 (fast_align) align by the same model
    with a preference for the diagonal.
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


def _chunks(pairs: JoinedStores) -> Iterator[list[Pair]]:
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


MOST = 100  # target tokens that are stored for a source token
LEAST = 1e-4  # smallest probability with which a target token goes with a source token
LARGEST = 2**29  # maximum bytes of a file


class _Saved(jsonfile.Schema):
    key: str
    partners: list[list[jsonfile.Count]]
    frequent: list[jsonfile.Count]


class Shortlist(NamedTuple):
    """What goes with each source token, and how frequent target tokens are."""

    partners: np.ndarray  # [S, M] int32, most probable first; the first one fills up
    frequent: np.ndarray  # [T] int32, every target token, most frequent first

    def tokens(self, source: Sequence[int] | np.ndarray, count: int, always: Sequence[int]) -> np.ndarray:
        """The kept target tokens, ascending."""
        kept = np.zeros(len(self.frequent), bool)
        known = np.asarray(source)
        known = known[known < len(self.partners)]
        kept[self.partners[known, :count]] = True
        kept[self.frequent[:count]] = True
        kept[list(always)] = True
        return np.flatnonzero(kept)

    @classmethod
    def learn(cls, pairs: JoinedStores, num_source: int, num_target: int, *, shared: bool) -> "Shortlist":
        """A shortlist from training pairs."""
        source, target, prob = probabilities(pairs, num_source, num_target)
        good = prob >= LEAST
        source, target, prob = source[good], target[good], prob[good]
        order = np.lexsort((-prob, source))
        source, target = source[order], target[order]
        rank = np.arange(len(source)) - np.searchsorted(source, source) + shared
        partners = np.full((num_source, MOST), -1, np.int32)
        if shared:
            partners[:, 0] = np.arange(num_source)
        partners[source[rank < MOST], rank[rank < MOST]] = target[rank < MOST]
        times = np.zeros(num_target, np.int64)
        for number in range(len(pairs)):
            np.add.at(times, pairs[number][1], 1)
        frequent = np.argsort(-times, kind="stable").astype(np.int32)
        none = partners[:, 0] < 0
        partners[none, 0] = frequent[0]
        return cls(np.where(partners < 0, partners[:, :1], partners), frequent)

    def save(self, path: Path, key: str) -> None:
        """Write it to a file."""
        again = (self.partners == self.partners[:, :1]) & (np.arange(MOST) > 0)
        rows = [row[:number].tolist() for row, number in zip(self.partners, MOST - again.sum(1), strict=True)]
        saved = {"key": key, "partners": rows, "frequent": self.frequent.tolist()}
        files.replace(path, json.dumps(saved).encode())

    @classmethod
    def open(cls, path: Path, key: str, num_source: int, num_target: int) -> "Shortlist | None":
        """Read a file; None if it is missing, damaged or made for other vocabularies."""
        try:
            saved = jsonfile.decode(jsonfile.read_bytes(path, LARGEST), _Saved)
        except (OSError, ValueError):
            return None
        lengths = np.array([len(row) for row in saved.partners])
        sizes = len(lengths), len(saved.frequent)
        if (
            saved.key != key
            or sizes != (num_source, num_target)
            or not 1 <= lengths.min() <= lengths.max() <= MOST
        ):
            return None
        partners = np.array([row + row[:1] * (MOST - len(row)) for row in saved.partners])
        frequent = np.array(saved.frequent)
        inside = max(int(partners.max()), int(frequent.max())) < num_target
        return cls(partners.astype(np.int32), frequent.astype(np.int32)) if inside else None
