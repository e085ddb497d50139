"""Segments, what a document is translated by: lines, paragraphs, cells, each with its inline markup.

Read next: sentences.py, which cuts them into sentences; moving.py, which moves their markup;
../documents/html.py, a document.
"""

from typing import Any, NamedTuple

from weft.text.links import Links

DEEPEST = 50
"""Inline elements inside each other, and ends of elements that are not open; the tags of further ones are
points."""


class Mark(NamedTuple):
    """Markup from one place of a text to another; a point if these are the same."""

    begin: int
    end: int
    what: Any
    """What the document needs to write it, such as its tags."""

    inner: tuple["Mark", ...] = ()
    """The marks inside it."""


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
    linked: bool = False
    """Whether the links of its words are needed, because there is markup in its segment."""


class WrittenSentence(NamedTuple):
    """A translation, with its links if they are needed."""

    text: str
    links: Links | None = None
    lost: str = ""
    """What is wrong with its placeholders."""

    lacking: tuple[str, ...] = ()
    """The characters of the source that the vocabulary lacks."""

    lacked: str = ""
    """What became of them."""


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
