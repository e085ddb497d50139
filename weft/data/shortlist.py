"""The target tokens worth trying for a source: likely translations of its tokens, and frequent ones.

Source: Jean et al. 2015, section 3.4, with IBM model 1; Devlin 2017 and Marian's lexical shortlist do the
same. Read next: model_one.py.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.data.model_one import PairCorpus, probabilities
from weft.store import files, jsonfile

MOST = 100
"""Target tokens that are stored for a source token."""
LEAST = 1e-4
"""Smallest probability with which a target token goes with a source token."""
LARGEST = 2**29
"""Maximum bytes of a file."""


class _Saved(jsonfile.Schema):
    key: str
    partners: list[list[jsonfile.Count]]
    frequent: list[jsonfile.Count]


class Shortlist(NamedTuple):
    """What goes with each source token, and how frequent target tokens are.

    Example:
        >>> short = Shortlist(np.array([[4, 4], [5, 6]]), np.array([7, 4, 5, 6, 0, 1, 2, 3]))
        >>> short.tokens([1], 1, [2, 3])
        array([2, 3, 5, 7])
    """

    partners: np.ndarray  # [S, M] int32, most probable first; the first one fills up
    frequent: np.ndarray  # [T] int32, every target token, most frequent first

    def tokens(self, source: Sequence[int] | np.ndarray, count: int, always: Sequence[int]) -> np.ndarray:
        """The kept target tokens, ascending.

        Args:
            source: the source tokens of a batch.
            count: how many partners of each, and how many frequent tokens.
            always: tokens that are kept too.
        """
        kept = np.zeros(len(self.frequent), bool)
        known = np.asarray(source)
        known = known[known < len(self.partners)]
        kept[self.partners[known, :count]] = True
        kept[self.frequent[:count]] = True
        kept[list(always)] = True
        return np.flatnonzero(kept)

    @classmethod
    def learn(cls, pairs: PairCorpus, num_source: int, num_target: int, *, shared: bool) -> "Shortlist":
        """A shortlist from training pairs.

        Args:
            pairs: tokens of both sides.
            num_source, num_target: sizes of the vocabularies.
            shared: both are one vocabulary, so a source token goes with itself too, as in a name.
        """
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
        """Write it to a file.

        Args:
            path: the file.
            key: tells whether it fits the vocabularies.
        """
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
