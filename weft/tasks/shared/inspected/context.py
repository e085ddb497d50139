"""Words in other sentences, to compare a word's vector in its sentence with.

The neighbours of a static vector are in the table; those of a vector in context are words in their
sentences, here from the run's validation data. Read next:
../../../inspect/views/embedding.py.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np

from weft.errors import WeftError

SENTENCES = 60
"""Maximum number of sentences to read for comparison."""

LONGEST = 300
"""Maximum number of characters of such a sentence."""


Words = tuple[list[str], np.ndarray]
"""The pieces of a sentence and their vectors [S, D] in it."""


class Around(NamedTuple):
    """Words in their sentences."""

    words: list[str]  # [N] pieces
    where: list[int]  # [N] the number of each one's sentence
    sentences: list[str]
    vectors: np.ndarray  # [N, D]


def around(some: Iterable[str], context: Callable[[str], Words | None]) -> Around | None:
    """The vectors of all words of some sentences; None if there are none.

    Args:
        some: sentences.
        context: maps a sentence to its words and their vectors, or None.

    Example:
        >>> around(["a b", "c"], lambda line: (line.split(), np.ones((len(line.split()), 2)))).where
        [0, 0, 1]
    """
    return gathered((sentence, context(sentence)) for sentence in some)


def gathered(read: Iterable[tuple[str, Words | None]]) -> Around | None:
    """The same for sentences that have been read before, for example in a batch."""
    words: list[str] = []
    where: list[int] = []
    said: list[str] = []
    vectors: list[np.ndarray] = []
    for sentence, found in read:
        if found is None:
            continue
        pieces, states = found
        words += pieces
        where += [len(said)] * len(pieces)
        said.append(sentence)
        vectors.append(states)
    return Around(words, where, said, np.concatenate(vectors)) if vectors else None


def sentences(read: Callable[[], Iterable[str]], count: int = SENTENCES) -> list[str]:
    """Some sentences of the run's own data, in order; empty if the data is missing.

    Args:
        read: opens the data.
        count: maximum number of sentences.
    """
    found: list[str] = []
    with suppress(WeftError, OSError):
        for sentence in islice((one for one in read() if one.strip()), count):
            found.append(sentence[:LONGEST])
    return found
