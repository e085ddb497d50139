"""Word documents (.docx): paragraphs as segments, runs of another format than the paragraph's as marks.

Until the document is written, runs are text and elements (runs.py). Read next: runs.py; markup.py.
"""

import re
from collections.abc import Sequence

from weft.documents import runs
from weft.documents.archive import packed, unpacked
from weft.documents.markup import MarkupTexts
from weft.documents.segments import Segment, WrittenSentence
from weft.documents.xml import parsed, written
from weft.errors import DataError

_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")


class Docx:
    """A document with its headers, footers and notes.

    Args:
        data: the file.
        name: its name, for errors.

    Raises:
        DataError: it is another kind of file.
        ConfigError: lxml is not installed.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self._files = unpacked(data, name)
        if "word/document.xml" not in self._files:
            raise DataError("expected a Word document with word/document.xml, got another archive", path=name)
        parts = [part for part in self._files if _PARTS.fullmatch(part)]
        self._roots = {part: parsed(self._files[part], name, part) for part in parts}
        self._paragraphs = [
            runs.Paragraph(one) for root in self._roots.values() for one in list(root.iter(runs.PARAGRAPH))
        ]
        self._texts = MarkupTexts([one.element for one in self._paragraphs], runs.role)

    @property
    def segments(self) -> list[Segment]:
        """One for each paragraph, or for each line of it."""
        return self._texts.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The document with the translations of its segments."""
        self._texts.fill(found)
        for one in self._paragraphs:
            one.restore()
        return packed({**self._files, **{part: written(root) for part, root in self._roots.items()}})
