"""Files as documents, by the ending of their name.

Read next: html.py, a short one; office.py and ../data/xml.py, what is refused.
"""

import codecs
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from weft.data.pairs import decoded
from weft.documents.html import Html
from weft.documents.markdown import Markdown
from weft.documents.memories import Po, Tmx, Xliff
from weft.documents.office import Docx, Odt
from weft.documents.plain import Plain, Srt
from weft.errors import ConfigError
from weft.text.segments import Segment, WrittenSentence

_NO_PAGES = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")
"""Encodings of Python that no page is written in; some cannot write every text again."""

_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


class Document(Protocol):
    """A file that can be translated."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The pieces of text to translate, in the order in which they are read."""

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The file with the translations of its segments; call it once."""


class TextFile:
    """A document that is text, as bytes."""

    def __init__(self, data: bytes, name: str, read: Callable[[str], Any], encoding: str = "utf-8") -> None:
        self._mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        self._encoding = "utf-8" if self._mark else encoding
        self._document = read(decoded(data.removeprefix(self._mark), name, self._encoding))
        self.segments: Sequence[Segment] = self._document.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The file with the translations of its segments."""
        text: str = self._document.written(found)
        return self._mark + text.encode(self._encoding, "xmlcharrefreplace")


_Opening = Callable[[bytes, str, str, str, list[str]], Document]
_KINDS: dict[str, _Opening] = {
    ".txt": lambda data, name, *_: TextFile(data, name, Plain),
    ".html": lambda data, name, *_: TextFile(data, name, Html, _charset(data)),
    ".md": lambda data, name, *_: TextFile(data, name, Markdown),
    ".srt": lambda data, name, *_: TextFile(data, name, lambda text: Srt(text, name)),
    ".po": lambda data, name, source, target, lost: TextFile(
        data, name, lambda text: Po(text, name, target, lost)
    ),
    ".docx": lambda data, name, source, target, lost: Docx(data, name, lost),
    ".odt": lambda data, name, *_: Odt(data, name),
    ".xliff": Xliff,
    ".tmx": lambda data, name, source, target, lost: Tmx(data, name, source, target),
}
_SAME = {
    ".vtt": ".srt",
    ".htm": ".html",
    ".xhtml": ".html",
    ".markdown": ".md",
    ".pot": ".po",
    ".xlf": ".xliff",
}
_CONVERTED = {
    ".doc": "soffice --headless --convert-to docx FILE",
    ".rtf": "soffice --headless --convert-to docx FILE",
    ".pdf": "pdftotext FILE text.txt",
    ".epub": "pandoc FILE -o book.html",
}
"""Commands that make a document of another file."""
ENDINGS = (*_KINDS, *_SAME)  # the endings of names that `opened` reads


def opened(data: bytes, name: str, source: str, target: str, lost: list[str] | None = None) -> Document:
    """A file as a document."""
    ending = PurePath(name).suffix.lower()
    kind = _SAME.get(ending, ending)
    if kind not in _KINDS:
        typed = _CONVERTED.get(ending, "").replace("FILE", shlex.quote(name))
        raise ConfigError(
            f"{name}: expected a file that ends in {', '.join(ENDINGS)}, got {ending or 'no ending'}"
            + (f"; convert it: {typed}" if typed else "")
        )
    return _KINDS[kind](data, name, source, target, [] if lost is None else lost)


def _charset(data: bytes) -> str:
    """The encoding that an HTML page names, if Python knows it."""
    found = _CHARSET.search(data[:2048])
    name = found[1].decode("ascii") if found else "utf-8"
    try:
        "".encode(name)  # raises for what is not an encoding of text
        return "utf-8" if codecs.lookup(name).name.replace("_", "-") in _NO_PAGES else name
    except (LookupError, UnicodeError):
        return "utf-8"
