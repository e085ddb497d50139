"""Lines of a parallel text as arrays of numbers. Read next: building.py, which puts them together."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np


class EncodedPairs(NamedTuple):
    """Pairs as token ids, without sos and eos."""

    source: Sequence[Sequence[int]]
    target: Sequence[Sequence[int]]
    cut: int = 0  # sources that were longer and have been cut


PairEncoder = Callable[[list[str], list[str]], EncodedPairs]
"""Many sources and as many targets to their token ids."""

Line = tuple[int, str, str]
"""Number, source, target."""

BATCH = 2_000
"""Lines given to an encoder at a time."""


class How(NamedTuple):
    """What decides the arrays beside the lines."""

    encode: PairEncoder
    max_length: int
    processes: int
    progress: Callable[[int], None] | None


class Encoded(NamedTuple):
    """Arrays of some lines; ends are those of the whole, so they are made when these are appended."""

    parts: dict[str, bytes]
    """source.ids, target.ids, lengths, numbers."""

    report: dict[str, int]


def encoded(lines: Sequence[Line], how: How) -> Encoded:
    """The arrays of some lines."""
    numbers, sources, targets = zip(*lines, strict=True)
    found = how.encode(list(sources), list(targets))
    rows = found.source, found.target
    lengths = np.array([list(map(len, side)) for side in rows], dtype=np.int64).T  # [N, 2]
    empty = (lengths == 0).any(1)
    too_long = (lengths > how.max_length).any(1) & ~empty
    kept = np.flatnonzero(~empty & ~too_long)
    parts = {}
    for name, side in zip(("source.ids", "target.ids"), rows, strict=True):
        flat = chain.from_iterable(side if len(kept) == len(lines) else [side[n] for n in kept.tolist()])
        parts[name] = np.fromiter(flat, dtype="<i4").tobytes()
    parts["lengths"] = lengths[kept].astype("<i4").tobytes()
    parts["numbers"] = np.array(numbers, dtype="<i8")[kept].tobytes()
    left = {"too_long": int(too_long.sum()), "empty": int(empty.sum()), "cut": found.cut}
    return Encoded(parts, {"pairs": len(lines), "kept": len(kept), **left})
