"""Encode lines of a parallel text as arrays of numbers. Read next: building.py, which joins them."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np


class EncodedPairs(NamedTuple):
    """Pairs as token ids, without sos and eos."""

    source: Sequence[Sequence[int]]
    target: Sequence[Sequence[int]]
    cut: int = 0  # number of truncated sources


PairEncoder = Callable[[list[str], list[str]], EncodedPairs]
"""Encodes lists of sources and targets of equal length."""

Line = tuple[int, str, str]
"""Line number, source, target."""

BATCH = 2_000
"""Lines encoded at a time."""


class EncodingSettings(NamedTuple):
    """The encoder of both sides, the most tokens of a side, and how many processes encode."""

    encode: PairEncoder
    max_length: int
    processes: int
    progress: Callable[[int], None] | None


class EncodedLines(NamedTuple):
    """Arrays of some lines, without `ends`, which are computed when the arrays are appended."""

    parts: dict[str, bytes]
    """source.ids, target.ids, lengths, numbers."""

    report: dict[str, int]


def encoded(lines: Sequence[Line], settings: EncodingSettings) -> EncodedLines:
    """Lines as arrays of token numbers; those that are empty or too long are left out and counted."""
    numbers, sources, targets = zip(*lines, strict=True)
    found = settings.encode(list(sources), list(targets))
    rows = found.source, found.target
    lengths = np.array([list(map(len, side)) for side in rows], dtype=np.int64).T  # [N, 2]
    empty = (lengths == 0).any(1)
    too_long = (lengths > settings.max_length).any(1) & ~empty
    kept = np.flatnonzero(~empty & ~too_long)
    parts = {}
    for name, side in zip(("source.ids", "target.ids"), rows, strict=True):
        flat = chain.from_iterable(side if len(kept) == len(lines) else [side[n] for n in kept.tolist()])
        parts[name] = np.fromiter(flat, dtype="<i4").tobytes()
    parts["lengths"] = lengths[kept].astype("<i4").tobytes()
    parts["numbers"] = np.array(numbers, dtype="<i8")[kept].tobytes()
    left = {"too_long": int(too_long.sum()), "empty": int(empty.sum()), "cut": found.cut}
    return EncodedLines(parts, {"pairs": len(lines), "kept": len(kept), **left})
