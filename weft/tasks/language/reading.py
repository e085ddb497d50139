"""How a language model reads a text: as lines, each closed by </s>, or whole, as another's tokenizer does.

Read next: predictor.py, which continues what was read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from weft.text.imported import ImportedVocabulary
from weft.text.vocabulary import EOS, SOS, UNK, Vocabulary

Spelling = Callable[[int], tuple[int, str]]
"""Is given the tokens of a text in order; returns where each begins in it, and the text it completes."""


class TextReading(ABC):
    """Texts as tokens and back.

    Attributes:
        opening: tokens read before a text.
    """

    opening: Sequence[int]

    @abstractmethod
    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without those read before it."""

    @abstractmethod
    def begins(self, text: str) -> list[int]:
        """The place in a text where each of its tokens begins."""

    @abstractmethod
    def decoded(self, tokens: Sequence[int]) -> str:
        """The text of known tokens."""

    @abstractmethod
    def spelling(self) -> Spelling:
        """Spells tokens one by one; the result is `decoded` of all of them."""

    @abstractmethod
    def shown(self, tokens: Sequence[int]) -> list[str]:
        """Each token as text."""

    @abstractmethod
    def numbered(self, ids: Sequence[int]) -> list[int]:
        """Numbers of the run's tokenizer.json as tokens.

        Raises:
            DataError: there is no such number.
        """

    def row(self, text: str) -> list[int]:
        """What the model reads for a text: at least one token."""
        return [*self.opening, *self.tokens(text)] or [SOS]


def reading_of(vocabulary: Vocabulary) -> TextReading:
    """The reading of a run's texts."""
    if isinstance(vocabulary, ImportedVocabulary) and vocabulary.opening is not None:
        return WholeReading(vocabulary, vocabulary.opening)
    return LineReading(vocabulary)


class LineReading(TextReading):
    """Text as in stream.py: a line end is </s>, and one is read before the first line.

    Args:
        vocabulary: of a run.
    """

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

    def numbered(self, ids: Sequence[int]) -> list[int]:
        return self._vocabulary.numbered(ids)


class WholeReading(TextReading):
    """Text as the tokenizer of an imported model reads it: line ends are its own tokens.

    Args:
        vocabulary: of the run.
        opening: see Reading.
    """

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

    def numbered(self, ids: Sequence[int]) -> list[int]:
        return self._vocabulary.numbered(ids)


def known(tokens: Sequence[int], size: int) -> list[int]:
    """The tokens with a known word for each unknown one, so that the spaces around it stay."""
    return [min(5, size - 1) if token == UNK else token for token in tokens]
