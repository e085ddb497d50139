"""Segments, what a document is translated by: lines, paragraphs, cells, each with its inline markup.

`Links` say which words of a translation stand for which words of its source, as places in the two texts.
Read next: sentences.py, which cuts segments into sentences; moving.py, which moves their markup along links;
../documents/html.py, a document.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

from weft.words import spans

Span = tuple[int, int]  # where a word begins and ends in a text

LONGEST = 2000
"""Characters of a sentence whose pieces are looked for one by one if they are not the text as it stands."""


class Links(NamedTuple):
    """How much each word of a translation has of each word of its source."""

    weights: np.ndarray  # [T, S], each row sums to 1
    source: list[Span]
    target: list[Span]

    def looks(self, begin: int, end: int) -> np.ndarray:
        """[T] how much of its attention each word of the translation has on a part of the source."""
        inside = [number for number, place in enumerate(self.source) if place[0] < end and begin < place[1]]
        shares: np.ndarray = self.weights[:, inside].sum(1)
        return shares

    def rows(self, places: Sequence[Span]) -> list[int]:
        """The words of the translation that are in places of it."""
        return [
            row
            for row, (begin, end) in enumerate(self.target)
            if any(first < end and begin < last for first, last in places)
        ]


def proportional(source: str, target: str) -> Links:
    """Links by position alone, for a model whose attention cannot be had."""
    read, written = spans(source), spans(target)
    weights = np.zeros((len(written), len(read)), np.float32)
    if read:
        places = (2 * np.arange(len(written)) + 1) * len(read) / max(1, 2 * len(written))
        weights[
            np.arange(len(written)), np.minimum(np.ceil(places - 1).clip(0), len(read) - 1).astype(int)
        ] = 1
    return Links(weights, read, written)


def attended(
    source: str, target: str, pieces: tuple[Sequence[str], Sequence[str]], weights: np.ndarray
) -> Links:
    """Links from the attention [T, S] of each target piece over the source pieces."""
    plain = proportional(source, target)
    members = [
        _members(text, spans, shown)
        for text, spans, shown in zip((source, target), (plain.source, plain.target), pieces, strict=True)
    ]
    found = members[1].T @ weights[: len(pieces[1]), : len(pieces[0])] @ members[0]
    total = found.sum(1, keepdims=True)
    return plain._replace(weights=np.where(total > 1e-9, found / np.maximum(total, 1e-9), plain.weights))


def together(parts: Sequence[tuple[Links, int, int]]) -> Links:
    """The links of a text of several sentences."""
    source = [(begin + at, end + at) for links, at, _ in parts for begin, end in links.source]
    target = [(begin + at, end + at) for links, _, at in parts for begin, end in links.target]
    weights = np.zeros((len(target), len(source)), np.float32)
    row = column = 0
    for links, _, _ in parts:
        height, width = links.weights.shape
        weights[row : row + height, column : column + width] = links.weights
        row, column = row + height, column + width
    return Links(weights, source, target)


def _members(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> np.ndarray:
    """[pieces, words] the share of each piece's characters in each word."""
    at = np.full(len(text), -1)
    for number, (begin, end) in enumerate(spans):
        at[begin:end] = number
    found = np.zeros((len(pieces), len(spans)))
    for number, places in enumerate(_places(text, pieces)):
        held = [at[place] for place in places if at[place] >= 0]
        for word in held:
            found[number, word] += 1 / len(held)
    return found


def _places(text: str, pieces: Sequence[str]) -> list[list[int]]:
    """The characters of a text that each piece stands for."""
    shown = [_lower(piece.replace("▁", " ")) for piece in pieces]
    joined = "".join(shown)
    given = _lower(text)
    blocks = [(0, 0, 0)]
    bare = joined.strip()
    if bare and bare == given.strip():
        blocks = [(joined.index(bare), given.index(bare), len(bare))]
    elif len(text) <= LONGEST:
        blocks = [tuple(one) for one in SequenceMatcher(None, joined, given, False).get_matching_blocks()]  # type: ignore[misc]
    to = {left + step: right + step for left, right, count in blocks for step in range(count)}
    places, begin = [], 0
    for piece in shown:
        ends = range(begin, begin + len(piece))
        places.append([to[one] for one in ends if one in to and not text[to[one]].isspace()])
        begin += len(piece)
    for number, found in enumerate(places):
        if not found:  # such as an unknown piece: the characters that no other piece stands for
            first = max((one[-1] + 1 for one in places[:number] if one), default=0)
            last = min((one[0] for one in places[number + 1 :] if one), default=len(text))
            places[number] = list(range(first, last)) if shown[number].strip() else []
    return places


def _lower(text: str) -> str:
    """In lower case, where that has the same length."""
    return "".join(one if len(one.lower()) != 1 else one.lower() for one in text)


DEEPEST = 50
"""Inline elements inside each other, and ends of elements that are not open; the tags of further ones are
points."""


class Mark(NamedTuple):
    """Markup from one place of a text to another; a point if these are the same."""

    begin: int
    end: int
    what: Any  # what the document needs to write it, such as its tags
    inner: tuple["Mark", ...] = ()  # the marks inside it


class Tags(NamedTuple):
    """What is written around the content of a mark; a point has only the first."""

    before: str
    after: str = ""


class Segment(NamedTuple):
    """A text and the markup inside it; white space around it is kept."""

    text: str
    marks: tuple[Mark, ...] = ()


class Sentence(NamedTuple):
    """What a model translates at once."""

    text: str
    linked: bool = False  # whether its segment has markup, so that the links of its words are needed


class WrittenSentence(NamedTuple):
    """A translation, with its links if they are needed."""

    text: str
    links: Links | None = None
    lost: str = ""  # what is wrong with its placeholders
    lacking: tuple[str, ...] = ()  # the characters of the source that the vocabulary lacks
    lacked: str = ""  # what became of them


class _Open(NamedTuple):
    """An inline element that is not closed yet."""

    raw: str
    name: str
    begin: int
    inner: list[Mark]


class InlineText:
    """The text of a segment as it is read, and the inline elements around its parts."""

    def __init__(self) -> None:
        self.raw: list[str] = []
        self._texts: list[str] = []
        self._length = 0
        self._open = [_Open("", "", 0, [])]
        self._around = 0  # elements around all of it that were opened earlier

    def text(self, raw: str, text: str) -> None:
        """Add text, and how it is written in the source."""
        self.raw.append(raw)
        self._texts.append(text)
        self._length += len(text)

    def point(self, raw: str) -> None:
        """Add what is between words, such as an image."""
        self.raw.append(raw)
        self._open[-1].inner.append(Mark(self._length, self._length, Tags(raw)))

    def open(self, raw: str, name: str) -> None:
        """Begin an element."""
        if len(self._open) > DEEPEST:
            self.point(raw)
            return
        self.raw.append(raw)
        self._open.append(_Open(raw, name, self._length, []))

    def close(self, raw: str, name: str) -> None:
        """Close the innermost element of this name, and those inside it that were left open."""
        if name in [one.name for one in self._open]:
            while self._open[-1].name != name:
                self._close("")
            self._close(raw)
        elif len(self._open) == 1 and self._around < DEEPEST:  # opened in an earlier segment
            self._around += 1
            self._open.insert(0, _Open("", "", 0, []))
            self._close(raw)
        else:
            self.point(raw)
            return
        self.raw.append(raw)

    def ended(self) -> tuple[str, tuple[Mark, ...]]:
        """The text and its marks; elements that continue in the next segment end here, without a tag."""
        while len(self._open) > 1:
            self._close("")
        return "".join(self._texts), tuple(self._open[0].inner)

    def _close(self, raw: str) -> None:
        done = self._open.pop()
        mark = Mark(done.begin, self._length, Tags(done.raw, raw), tuple(done.inner))
        self._open[-1].inner.append(mark)
