"""Words in other sentences: what a word's vector in its sentence can be set beside.

A static vector has neighbours in the table; a vector in context has neighbours among words in their
sentences, here those of the data that the run was validated on. Read next:
../../../inspect/views/embedding.py.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np

from weft.errors import WeftError

SENTENCES = 60
"""Read beside the text that is looked at."""

LONGEST = 300
"""Characters of such a sentence."""


Words = tuple[list[str], np.ndarray]
"""The pieces of a sentence and their vectors [S, D] in it."""


class Around(NamedTuple):
    """Words in their sentences."""

    words: list[str]  # N pieces
    where: list[int]  # N numbers of their sentences
    sentences: list[str]
    vectors: np.ndarray  # [N, D]


def around(some: Iterable[str], context: Callable[[str], Words | None]) -> Around | None:
    """The vectors of all words of some sentences; None where there are none.

    Args:
        some: sentences.
        context: a sentence to what is in it, or None.

    Example:
        >>> around(["a b", "c"], lambda line: (line.split(), np.ones((len(line.split()), 2)))).where
        [0, 0, 1]
    """
    return gathered((sentence, context(sentence)) for sentence in some)


def gathered(read: Iterable[tuple[str, Words | None]]) -> Around | None:
    """The same of sentences that have been read already, together perhaps."""
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
    """Some sentences of a run's own data, in their order; none where the data is gone.

    Args:
        read: begins to read them.
        count: at most.
    """
    found: list[str] = []
    with suppress(WeftError, OSError):
        for sentence in islice((one for one in read() if one.strip()), count):
            found.append(sentence[:LONGEST])
    return found
