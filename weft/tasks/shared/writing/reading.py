"""How a source is read: whole or cut, with unknown words that the output may copy.

A pointer (../../nn/decoders/pointer.py) copies words that the vocabulary does not have. So that they can be
written, the unknown pieces of each text get numbers after those of the vocabulary, in order of appearance:
the extended vocabulary of See et al. The numbers are valid for that text only.
Read next: translator.py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from weft.data.store import EncodedPairs, PairEncoder
from weft.tasks.shared.writing.glossary import Glossary, read_glossary
from weft.text.vocabulary import UNK, Vocabulary, Word
from weft.wording import plural


class Reading(Protocol):
    """What a translator requires of its source vocabulary."""

    @property
    def base(self) -> Vocabulary:
        """The vocabulary that numbers the pieces."""

    def encode(self, text: str, /) -> list[int]:
        """The numbers of one text."""

    def encode_batch(self, texts: Sequence[str], /) -> list[list[int]]:
        """The numbers of many texts."""

    def pieces(self, ids: Sequence[int], /) -> list[str]:
        """The pieces as they are shown."""

    def words(self, ids: Sequence[int], text: str | None = None, /) -> list[Word]:
        """The words with the positions of their pieces."""

    def copyable(self, text: str, /) -> Sequence[str]:
        """The unknown pieces of a text that the output may copy, in the order of their numbers."""

    def extended(self, pieces: Sequence[str], /) -> "Reading":
        """The same with more pieces, numbered after those of the vocabulary."""


class SourceReader:
    """A vocabulary that reads the first tokens of a source and numbers its unknown pieces.

    Args:
        vocabulary: of the source.
        cut: maximum number of tokens that are read of a text; None for all.
        copies: whether unknown pieces get numbers of their own.

    Example:
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> reader = SourceReader(words, cut=4, copies=True)
        >>> reader.encode("a dog sat, a dog ran"), reader.copyable("a dog sat, a dog ran")
        ([4, 7, 6, 8], [' dog', ','])
    """

    def __init__(self, vocabulary: Vocabulary, *, cut: int | None, copies: bool) -> None:
        self.base = vocabulary
        self.cut = cut
        self.copies = copies
        # Imported models expect symbols at the end of a text, also of one that is cut.
        self._end = [] if cut is None else vocabulary.encode("")[len(vocabulary.begin()) :]

    def __str__(self) -> str:
        cut = "whole sources" if self.cut is None else f"the first {plural(self.cut, 'token')} of a source"
        return f"{cut}, {'unknown words to be copied' if self.copies else 'nothing to be copied'}"

    def encode(self, text: str) -> list[int]:
        """The numbers of one text, after cutting."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts, after cutting."""
        rows = [self._shortened(row) for row in self.base.encode_batch(texts)]
        if self.copies:
            for place, row in enumerate(rows):
                if UNK in row:
                    rows[place] = self._named(row, texts[place])[0]
        return rows

    def num_cut(self, texts: Sequence[str]) -> int:
        """How many texts are cut."""
        if self.cut is None:
            return 0
        return sum(len(row) > self.cut for row in self.base.encode_batch(texts))

    def counted(self, target: Vocabulary) -> PairEncoder:
        """An encoder of pairs, see `encode_pairs`, that also counts the sources it cuts."""

        def encode(sources: list[str], targets: list[str]) -> EncodedPairs:
            found = encode_pairs(self, target, sources, targets)
            return found._replace(cut=self.num_cut(sources))

        return encode

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as they are shown."""
        return self.base.pieces(ids)

    def words(self, ids: Sequence[int], text: str | None = None) -> list[Word]:
        """The words with the positions of their pieces."""
        return self.base.words(ids, text)

    def copyable(self, text: str) -> Sequence[str]:
        """The unknown pieces of a text after cutting, each once."""
        if not self.copies:
            return ()
        row = self._shortened(self.base.encode(text))
        return self._named(row, text)[1] if UNK in row else ()

    def extended(self, pieces: Sequence[str]) -> "SourceReader":
        """The same for a text whose unknown pieces are known."""
        return SourceReader(self.base.extended(pieces), cut=self.cut, copies=False)

    def _shortened(self, row: list[int]) -> list[int]:
        if self.cut is None or len(row) <= self.cut:
            return row
        return (
            [*row[: self.cut - len(self._end)], *self._end] if len(self._end) < self.cut else row[: self.cut]
        )

    def _named(self, row: list[int], text: str) -> tuple[list[int], list[str]]:
        unknown = iter(self.base.unknown(text))
        size, numbers = len(self.base), dict[str, int]()
        found = [
            number if number != UNK else numbers.setdefault(next(unknown), size + len(numbers))
            for number in row
        ]
        return found, list(numbers)


class Annotating:
    """Another reading that also reads the translations of a glossary's terms.

    Args:
        reading: reads the annotated texts.
        glossary: writes the translations into them.
    """

    def __init__(self, reading: Reading, glossary: Glossary) -> None:
        self._reading, self._glossary = reading, glossary
        self.base, self.pieces, self.words = reading.base, reading.pieces, reading.words
        self.extended = reading.extended

    def encode(self, text: str) -> list[int]:
        """The numbers of one text."""
        return self._reading.encode(self._glossary.annotated(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts."""
        return self._reading.encode_batch([self._glossary.annotated(text) for text in texts])

    def copyable(self, text: str) -> Sequence[str]:
        """The unknown pieces of a text that the output may copy."""
        return self._reading.copyable(self._glossary.annotated(text))


def annotating(reading: Reading, path: Path | None) -> Reading:
    """The reading, with the annotations of a glossary's file; None for no file."""
    return reading if path is None else Annotating(reading, read_glossary(path))


def encode_pairs(
    source: Reading, target: Vocabulary, sources: Sequence[str], targets: Sequence[str]
) -> EncodedPairs:
    """Sources and targets as tokens; an unknown target word found in the source gets its copy number.

    Args:
        source: reads the sources.
        target: the vocabulary of the targets.
        sources, targets: texts, as many of each.
    """
    read, written = source.encode_batch(sources), target.encode_batch(targets)
    for place, row in enumerate(written):
        if UNK in row and (copyable := source.copyable(sources[place])):
            written[place] = target.extended(copyable).encode(targets[place])
    return EncodedPairs(read, written)
