"""OpenDocument texts (.odt): paragraphs and headings as segments. Read next: markup.py."""

from collections.abc import Sequence
from typing import Any

from weft.data.xml import parsed, written
from weft.documents.archive import packed, unpacked
from weft.documents.markup import MarkupTexts, Role
from weft.errors import DataError
from weft.text.segments import WrittenSentence

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_PARTS = ("content.xml", "styles.xml")  # headers and footers are in the second


class Odt:
    """A text document; each line of a paragraph is a segment."""

    def __init__(self, data: bytes, name: str) -> None:
        self._files = unpacked(data, name)
        if "content.xml" not in self._files:
            raise DataError("expected an OpenDocument text with content.xml, got another archive", path=name)
        self._roots = {part: parsed(self._files[part], name, part) for part in _PARTS if part in self._files}
        elements = [one for root in self._roots.values() for one in root.iter(f"{_TEXT}p", f"{_TEXT}h")]
        self._texts = MarkupTexts(elements, _role)
        self.segments = self._texts.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The document with the translations of its segments."""
        self._texts.fill(found)
        return packed({**self._files, **{part: written(root) for part, root in self._roots.items()}})


def _role(element: Any) -> Role:
    if element.tag in (f"{_TEXT}span", f"{_TEXT}a", f"{_TEXT}ruby-base"):
        return "inline"
    return "break" if element.tag in (f"{_TEXT}line-break", f"{_TEXT}tab") else "point"
