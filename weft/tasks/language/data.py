"""Text as one row of tokens, each line closed by </s>: how it is read, cut into pieces and spelled again.

    </s> w_1 w_2 </s> w_3 </s> ...      the leading </s> is only read; all others are also predicted

The first token of a line follows the previous line end, so no <sos> is used, and a model that has read
a line to its end is at the start of the next. An imported model reads the whole text as its tokenizer does,
line ends included; there the first token is only read. Read next: scoring.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.plain import PlainText
from weft.errors import DataError
from weft.masks import fill, grid, to_device
from weft.nn.embed.tokens import idf
from weft.tasks.abilities import Reading, Spelling
from weft.tasks.seq2seq.batch_search import pad
from weft.text.characters import normalise
from weft.text.imported import ImportedVocabulary
from weft.text.vocabulary import EOS, UNK, Vocabulary


def reading_of(vocabulary: Vocabulary) -> Reading:
    """The reading of a run's texts."""
    if isinstance(vocabulary, ImportedVocabulary) and vocabulary.opening is not None:
        return WholeReading(vocabulary, vocabulary.opening)
    return LineReading(vocabulary)


class LineReading(Reading):
    """Text as one Stream: a line end is </s>, and one is read before the first line."""

    opening = (EOS,)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def tokens(self, text: str) -> list[int]:
        rows = self._vocabulary.encode_batch(text.split("\n"))
        return [token for row in rows for token in (EOS, *row)][1:]

    def begins(self, text: str) -> list[int]:
        found, begin = [], 0
        for line in text.split("\n"):
            found += [begin + place for place in self._vocabulary.begins(line)]
            begin += len(line)
            found.append(begin)  # of the line end
            begin += 1
        return found[:-1]

    def decoded(self, tokens: Sequence[int]) -> str:
        lines: list[list[int]] = [[]]
        for token in tokens:
            if token == EOS:
                lines.append([])
            else:
                lines[-1].append(token)
        return "\n".join(self._vocabulary.decode(line) for line in lines)

    def spelling(self) -> Spelling:
        end, fresh, space = 0, True, False  # a space counts once something follows it on its line

        def feed(token: int) -> tuple[int, str]:
            nonlocal end, fresh, space
            begin, new = end + space, ""
            if token == EOS:
                begin, new, fresh, space = end, "\n", True, False
            elif token == UNK:
                fresh = False
            elif token > EOS:
                for mark in self._vocabulary.spelled([token])[0]:
                    if mark.isspace():
                        space = not fresh
                    else:
                        new += " " * space + mark
                        fresh = space = False
            end += len(new)
            return begin, new

        return feed

    def shown(self, tokens: Sequence[int]) -> list[str]:
        pieces = self._vocabulary.spelled(tokens)
        return ["\n" if token == EOS else piece for token, piece in zip(tokens, pieces, strict=True)]


class WholeReading(Reading):
    """Text as the tokenizer of an imported model reads it: line ends are its own tokens."""

    def __init__(self, vocabulary: ImportedVocabulary, opening: Sequence[int]) -> None:
        self._vocabulary = vocabulary
        self.opening = tuple(opening)

    def tokens(self, text: str) -> list[int]:
        return self._vocabulary.encode(text)

    def begins(self, text: str) -> list[int]:
        return self._vocabulary.begins(text)

    def decoded(self, tokens: Sequence[int]) -> str:
        return self._vocabulary.exact(tokens)

    def spelling(self) -> Spelling:
        grown, end = self._vocabulary.growing(), 0

        def feed(token: int) -> tuple[int, str]:
            nonlocal end
            new = grown(token)
            end += len(new)
            return end - len(new), new

        return feed

    def shown(self, tokens: Sequence[int]) -> list[str]:
        return self._vocabulary.spelled(tokens)


def known(tokens: Sequence[int], size: int) -> list[int]:
    """The tokens with a known word for each unknown one, so that the spaces around it stay."""
    return [min(5, size - 1) if token == UNK else token for token in tokens]


LINES = 5_000  # encoded per step


class Stream(NamedTuple):
    """A text as tokens."""

    tokens: np.ndarray  # [1 + N] int32, the first one </s>, or the first of a whole text
    lines: int
    words: int  # separated by white space, and one </s> per line (none in a whole text)
    characters: int  # of the normalised text, and one line end per line
    each: np.ndarray = np.zeros((0, 2), np.int64)  # [lines, 2] words and characters of each line
    last: np.ndarray | None = None  # [lines] of a whole text: the place of each line's last token

    @property
    def size(self) -> int:
        """N, the tokens to predict."""
        return len(self.tokens) - 1

    @property
    def unknown(self) -> int:
        """Tokens that the vocabulary does not have."""
        return int((self.tokens == UNK).sum())

    def ends(self) -> np.ndarray:
        """[lines] the place of each line's </s>, or of its last token in a whole text."""
        return np.flatnonzero(self.tokens[1:] == EOS) + 1 if self.last is None else self.last

    def by_line(self, values: np.ndarray) -> np.ndarray:
        """[lines] the sum of values [N] over the tokens of each line."""
        numbers = np.repeat(np.arange(self.lines), np.diff(self.ends(), prepend=0))
        return np.bincount(numbers, values, self.lines)


def joined(one: Stream, other: Stream) -> Stream:
    """One text after the other; a whole text begins with the tokens of its opening again."""
    whole = one.last is not None
    tokens = np.concatenate([one.tokens, other.tokens if whole else other.tokens[1:]])
    last = None if one.last is None or other.last is None else [one.last, other.last + len(one.tokens)]
    return Stream(
        tokens,
        one.lines + other.lines,
        one.words + other.words,
        one.characters + other.characters,
        np.concatenate([one.each, other.each]),
        None if last is None else np.concatenate(last),
    )


def encode(lines: Iterable[str], vocabulary: Vocabulary, name: str) -> Stream:
    """Encode lines as one row of tokens."""
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


def read(text: PlainText, vocabulary: Vocabulary) -> Stream:
    """A text as its model reads it: line by line, or whole if its tokenizer was imported."""
    if vocabulary.opening is None:
        return encode(text, vocabulary, str(text.path))
    return encode_whole(text.whole(), vocabulary, str(text.path))


def encode_whole(text: str, vocabulary: Vocabulary, name: str) -> Stream:
    """Encode a whole text, after the tokens that its tokenizer puts before it; raises as `encode`."""
    reading = reading_of(vocabulary)
    row = reading.row(text)
    if not text.strip() or len(row) < 2:
        raise DataError("expected a text of at least two tokens, got fewer", path=name)
    lines = text.removesuffix("\n").split("\n")
    breaks = np.flatnonzero(np.array(list(text)) == "\n")
    begins = np.array([*[0] * len(reading.opening), *vocabulary.begins(text)])
    number = np.minimum(np.searchsorted(breaks, begins), len(lines) - 1)  # the line of each token
    last = np.searchsorted(number, np.arange(len(lines)), "right") - 1
    counts = np.array([(len(line.split()), len(line) + 1) for line in lines], np.int64)
    counts[-1, 1] -= not text.endswith("\n")
    words, characters = counts.sum(0).tolist()
    return Stream(np.array(row, np.int32), len(lines), words, characters, counts, last)


class StreamPieces:
    """Batches for carried states: row r of batch i is piece i of the r-th part of the text.

    The last tokens that do not fill a row of the parts are left out of training (fewer than `rows`).
    """

    def __init__(self, count: int, *, rows: int, length: int) -> None:
        self.part = count // rows
        if not self.part:
            raise DataError(
                f"the training text has only {count} tokens for data.batch_rows: {rows}; lower it"
            )
        self.rows, self.length = rows, length

    def epoch(self, number: int) -> np.ndarray:
        """[batches, rows] where the pieces begin; the same in every epoch."""
        return np.arange(0, self.part, self.length)[:, None] + np.arange(self.rows) * self.part


class RandomWindows:
    """Batches of random windows; an epoch has as many tokens as the text."""

    def __init__(self, count: int, *, rows: int, length: int, seed: int) -> None:
        if count < length:
            raise DataError(f"the training text has only {count} tokens for data.length: {length}; lower it")
        self._most, self._rows, self._seed = count - length, rows, seed
        self._batches = -(-count // (rows * length))

    def epoch(self, number: int) -> list[np.ndarray]:
        """Batch i as the places [rows] where its windows begin."""
        chance = np.random.default_rng([self._seed, number])
        return list(chance.integers(0, self._most + 1, (self._batches, self._rows)))


def lines_of(stream: Stream) -> Iterator[np.ndarray]:
    """Each line's tokens without its </s>."""
    begin, closed = 1, stream.last is None
    for end in stream.ends().tolist():
        yield stream.tokens[begin : end + (not closed)]
        begin = end + 1


def rarity(stream: Stream, size: int) -> Tensor:
    """The idf of each token, [V]; a line is a document."""
    line = np.cumsum(stream.tokens[:-1] == EOS) - 1
    pairs = np.unique(line.astype(np.int64) * size + stream.tokens[1:])
    holding = np.bincount(pairs % size, minlength=size)
    return idf(torch.from_numpy(holding), stream.lines)


class ProseBatch(NamedTuple):
    """Inputs and targets for a weft.models.Generator without an encoder."""

    target_in: Tensor  # [B, T] the token before each target; </s> before the first of a line
    target_out: Tensor  # [B, T] int64
    target_mask: Tensor  # [B, T] bool
    target_tokens: int
    continues: bool = False  # whether it begins where the previous batch ended

    @property
    def source(self) -> Tensor:
        """Unused: nothing is read first."""
        return self.target_in

    @property
    def source_mask(self) -> Tensor:
        """See `source`: its rows are those of the batch."""
        return self.target_mask

    def to(self, device: torch.device) -> "ProseBatch":
        """The same batch on a device."""
        return to_device(self, device)

    def rows(self, chosen: slice) -> "ProseBatch":
        """Some rows, with the batch's padding."""
        first, second, third = (part[chosen] for part in self[:3])
        return ProseBatch(first, second, third, int(third.sum()), self.continues)

    def filled(self) -> "ProseBatch":
        """The same batch with masked rows and columns, as in PairBatch; windows need none."""
        if self.target_mask.all():
            return self
        rows, columns = grid(len(self.target_in)), grid(self.target_in.shape[1])
        first, second, third = (fill(part, rows, columns) for part in self[:3])
        return ProseBatch(first, second, third, self.target_tokens, self.continues)


def cut(tokens: np.ndarray, starts: np.ndarray, length: int, *, continues: bool = False) -> ProseBatch:
    """Pieces of one length that begin at `starts` [B]."""
    places = starts[:, None] + np.arange(length + 1)
    rows = torch.from_numpy(tokens[places].astype(np.int64))
    mask = torch.ones(len(starts), length, dtype=torch.bool)
    return ProseBatch(rows[:, :-1], rows[:, 1:], mask, mask.numel(), continues)


def collate_lines(lines: Sequence[np.ndarray | list[int]]) -> ProseBatch:
    """Whole lines, as inputs and as targets [B, T] with their ends.

    Example:
        >>> batch = collate_lines([[4, 5], [6]])
        >>> batch.target_tokens, batch.target_out.tolist()  # 3 ends a line, 0 is padding
        (5, [[4, 5, 3], [6, 3, 0]])
    """
    before, _ = pad([[EOS, *line] for line in lines])
    after, mask = pad([[*line, EOS] for line in lines])
    return ProseBatch(before, after, mask, int(mask.sum()))
