"""Segments, what a document is translated by: lines, paragraphs, cells, each with its inline markup.

Read next: sentences.py, which cuts them into sentences; moving.py, which moves their markup; html.py, a
document.
"""

from typing import Any, NamedTuple

from weft.documents.links import Links


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
