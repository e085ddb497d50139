"""Text as one row of tokens, each line closed by </s>, and how it is cut into pieces.

    </s> w_1 w_2 </s> w_3 </s> ...      the leading </s> is only read; all others are also predicted

The first token of a line follows the previous line end, so no <sos> is used, and a model that has read
a line to its end is at the start of the next. Read next: batch.py.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.batching import Batches
from weft.errors import DataError
from weft.nn.embed.weighted import idf
from weft.text.normalise import normalise
from weft.text.vocabulary import EOS, UNK, Vocabulary

LINES = 5_000  # encoded per step


class Stream(NamedTuple):
    """A text as tokens."""

    tokens: np.ndarray  # [1 + N] int32, the first one </s>
    lines: int
    words: int  # separated by white space, and one </s> per line
    characters: int  # of the normalised text, and one line end per line
    each: np.ndarray = np.zeros((0, 2), np.int64)  # [lines, 2] words and characters of each line

    @property
    def size(self) -> int:
        """N, the tokens to predict."""
        return len(self.tokens) - 1

    @property
    def unknown(self) -> int:
        """Tokens that the vocabulary does not have."""
        return int((self.tokens == UNK).sum())

    def ends(self) -> np.ndarray:
        """[lines] the place of each line's </s>."""
        return np.flatnonzero(self.tokens[1:] == EOS) + 1


def encode(lines: Iterable[str], vocabulary: Vocabulary, name: str) -> Stream:
    """Encode lines as one row of tokens.

    Raises:
        DataError: the lines have no words.
    """
    parts = [np.array([EOS], np.int32)]
    number = 0
    each = []
    lines = iter(lines)
    while some := list(islice(lines, LINES)):
        rows = vocabulary.encode_batch(some)
        flat = [token for row in rows for token in (*row, EOS)]
        parts.append(np.array(flat, np.int32))
        number += len(some)
        plain = (normalise(line, form=vocabulary.form, lowercase=vocabulary.lowercase) for line in some)
        each += [(len(line.split()) + 1, len(one) + 1) for line, one in zip(some, plain, strict=True)]
    tokens = np.concatenate(parts)
    if len(tokens) == 1 + number:
        raise DataError("expected text, got only white space", path=name)
    counts = np.array(each, np.int64)
    words, characters = counts.sum(0).tolist()
    return Stream(tokens, number, words, characters, counts)


class Pieces:
    """Batches for carried states: row r of batch i is piece i of the r-th part of the text.

    The last tokens that do not fill a row of the parts are left out of training (fewer than `rows`).

    Args:
        count: N.
        rows, length: of a batch.

    Raises:
        DataError: the text is too short for so many rows.
    """

    def __init__(self, count: int, *, rows: int, length: int) -> None:
        self.part = count // rows
        if not self.part:
            raise DataError(f"the training text has {count} tokens, data.rows asks for {rows} rows; lower it")
        self.rows, self.length = rows, length

    def epoch(self, number: int) -> "Epoch":
        """The same batches in every epoch."""
        starts = np.arange(self.rows) * self.part
        return Epoch(starts, self.part, self.length)


class Epoch:
    """Batch i as the places [rows] where its pieces begin."""

    def __init__(self, starts: np.ndarray, part: int, length: int) -> None:
        self._starts, self._part, self._length = starts, part, length

    def __len__(self) -> int:
        return -(-self._part // self._length)

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        return self._starts + index * self._length


class Windows:
    """Batches of random windows; an epoch has as many tokens as the text.

    Args:
        count: N.
        rows, length: of a batch.
        seed: of the places.

    Raises:
        DataError: the text is shorter than a window.
    """

    def __init__(self, count: int, *, rows: int, length: int, seed: int) -> None:
        if count < length:
            raise DataError(f"the training text has {count} tokens, data.length asks for {length}; lower it")
        self._most, self._rows, self._seed = count - length, rows, seed
        self._batches = -(-count // (rows * length))

    def epoch(self, number: int) -> list[np.ndarray]:
        """Batch i as the places [rows] where its windows begin."""
        chance = np.random.default_rng([self._seed, number])
        return list(chance.integers(0, self._most + 1, (self._batches, self._rows)))


def lines_of(stream: Stream) -> Iterator[np.ndarray]:
    """Each line's tokens without its </s>."""
    begin = 1
    for end in stream.ends().tolist():
        yield stream.tokens[begin:end]
        begin = end + 1


def line_batches(stream: Stream, *, rows: int, length: int, seed: int) -> Batches:
    """Batches of lines of similar length; a line's number is its place in the text."""
    ends = stream.ends()
    lengths = np.diff(ends, prepend=0) - 1
    sides = np.stack([lengths, lengths], 1)
    return Batches(sides, max_tokens=rows * length, max_rows=None, seed=seed)


def rarity(stream: Stream, size: int) -> Tensor:
    """The idf of each token, [V]; a line is a document."""
    line = np.cumsum(stream.tokens[:-1] == EOS) - 1
    pairs = np.unique(line.astype(np.int64) * size + stream.tokens[1:])
    holding = np.bincount(pairs % size, minlength=size)
    return idf(torch.from_numpy(holding), stream.lines)
