"""Word documents (.docx) and OpenDocument texts (.odt), zip archives of XML: paragraphs as segments.

Runs of a Word document with another format than the paragraph's are marks; until it is written, runs are text
and elements. Read next: markup.py.
"""

import copy
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weft.data.xml import parsed, written
from weft.documents.markup import MarkupTexts, Role, fill_element
from weft.errors import DataError, library
from weft.text.segments import WrittenSentence

LARGEST = 200 * 2**20  # maximum bytes of all files of an archive, unpacked

MOST = 5000  # maximum number of files in an archive


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The files of an archive by name, in its order."""
    found: dict[str, bytes] = {}
    left = LARGEST
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > MOST:
                raise DataError(
                    f"expected at most {MOST:,} files in the archive, got {len(members):,}", path=name
                )
            for member in members:
                with archive.open(member) as file:  # the size that it declares may be wrong
                    found[member.filename] = file.read(left + 1)
                left -= len(found[member.filename])
                if left < 0:
                    raise DataError(
                        f"the archive has more than {LARGEST // 2**20} MiB unpacked; give a smaller file",
                        path=name,
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"not a readable archive ({error}); save the file again", path=name) from None
    return found


def packed(files: Mapping[str, bytes]) -> bytes:
    """An archive; a file called mimetype is first and not compressed, as OpenDocument requires."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files, key=lambda one: one != "mimetype"):
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), files[name], how)
    return out.getvalue()


_DOCX_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")


class Docx:
    """A document with its headers, footers and notes; each line of a paragraph is a segment."""

    def __init__(self, data: bytes, name: str, lost: list[str]) -> None:
        self._files = unpacked(data, name)
        if "word/document.xml" not in self._files:
            raise DataError("expected a Word document with word/document.xml, got another archive", path=name)
        parts = [part for part in self._files if _DOCX_PARTS.fullmatch(part)]
        self._roots = {part: parsed(self._files[part], name, part) for part in parts}
        self._paragraphs = [
            Paragraph(one) for root in self._roots.values() for one in list(root.iter(PARAGRAPH))
        ]
        if kept := list(dict.fromkeys(text for one in self._paragraphs for text in one.kept)):
            shown = ", ".join(map(repr, kept[:3])) + ", ..." * (len(kept) > 3)
            lost.append(
                f"{name}: the text of fields stays as it is: {shown}; in Word, F9 updates a table of "
                "contents, and Ctrl+Shift+F9 makes a link plain text"
            )
        self._texts = MarkupTexts([one.element for one in self._paragraphs], _docx_role)
        self.segments = self._texts.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The document with the translations of its segments."""
        self._texts.fill(found)
        for one in self._paragraphs:
            one.restore()
        return packed({**self._files, **{part: written(root) for part, root in self._roots.items()}})


W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PARAGRAPH = f"{W}p"
RUN = "run"  # the element of a run of another format, as long as the document is not restored

_AROUND = {
    f"{W}{name}" for name in ("hyperlink", "ins", "smartTag", "sdt", "sdtContent", "dir", "bdo", "moveTo")
}
_BREAKS = {f"{W}{name}" for name in ("br", "cr", "tab", "ptab")}
_SIGNS = {f"{W}noBreakHyphen": "\u2011", f"{W}softHyphen": "\u00ad"}
_IGNORED = {f"{W}{name}" for name in ("lang", "noProof", "webHidden")}
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


class Paragraph:
    """A paragraph whose runs are text, until it is restored."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self._etree = library("lxml.etree", "documents", "a Word document")
        self.kept: list[str] = []
        """Texts of fields, which stay as they are."""
        self._formats: dict[str, Any] = {}
        """w:rPr by its text."""
        self._fields = 0  # open complex fields; what is inside them is not translated
        sizes: Counter[str] = Counter()
        for run in _runs(element):
            sizes[self._format(run)] += sum(len(text.text or "") for text in run.iter(f"{W}t"))
        self._usual = sizes.most_common(1)[0][0] if sizes else ""
        self._open(element)

    def restore(self) -> None:
        """Make runs of all texts again."""
        self._close(self.element, self._usual)

    def _format(self, run: Any) -> str:
        given = run.find(f"{W}rPr")
        if given is None:
            return ""
        kept = copy.deepcopy(given)
        for one in list(kept):
            if one.tag in _IGNORED:
                kept.remove(one)
        kept.tail = None
        key = self._etree.tostring(kept, method="c14n").decode() if len(kept) else ""
        self._formats.setdefault(key, kept)
        return key

    def _open(self, element: Any) -> None:
        """Replace the runs of a paragraph, or of an element around runs, by their texts."""
        for child in list(element):
            child.tail = None
            if child.tag == f"{W}r":
                for part in self._parts(child):
                    child.addprevious(part)
                element.remove(child)
            elif child.tag in _AROUND:
                self._open(child)
            elif child.tag == f"{W}fldSimple":
                self._keep("".join(one.text or "" for one in child.iter(f"{W}t")))
        _merge(element, self._usual)

    def _keep(self, text: str) -> None:
        if any(map(str.isalpha, text)):
            self.kept.append(text.strip())

    def _parts(self, run: Any) -> list[Any]:
        """A run as elements: `RUN` for texts, w:r for anything else."""
        key, found = self._format(run), list[Any]()
        for child in list(run):
            if child.tag == f"{W}rPr":
                continue
            if child.tag == f"{W}fldChar":
                kind = child.get(f"{W}fldCharType")
                self._fields += {"begin": 1, "end": -1}.get(kind, 0)
            text = _SIGNS.get(child.tag, child.text or "" if child.tag == f"{W}t" else None)
            if text is not None and not self._fields:
                part = self._etree.Element(RUN, format=key)
                part.text = text
            else:
                self._keep(text or "")
                part = self._run(key)
                part.append(child)  # moved: a text box has paragraphs of its own
                child.tail = None
            found.append(part)
        return found

    def _run(self, key: str) -> Any:
        run = self._etree.Element(f"{W}r")
        if key:
            run.append(copy.deepcopy(self._formats[key]))
        return run

    def _close(self, element: Any, key: str) -> None:
        """Make runs of the texts of an element; those of `RUN` take its place."""
        parts = [*self._texts(element.text, key)]
        for child in list(element):
            tail = child.tail
            child.tail = None
            if child.tag == RUN:
                self._close(child, child.get("format"))
                parts += list(child)
            else:
                if child.tag in _AROUND:
                    self._close(child, key)
                parts.append(child)
            parts += self._texts(tail, key)
        element.text = None
        element[:] = parts

    def _texts(self, text: str | None, key: str) -> list[Any]:
        if not text:
            return []
        run = self._run(key)
        run.append(self._etree.Element(f"{W}t", {_SPACE: "preserve"}))
        run[-1].text = text
        return [run]


def _docx_role(element: Any) -> Role:
    """What an element of a paragraph is, see markup.py."""
    if element.tag == RUN or element.tag in _AROUND:
        return "inline"
    return "break" if element.tag == f"{W}r" and any(one.tag in _BREAKS for one in element) else "point"


def _runs(element: Any) -> list[Any]:
    """The runs of a paragraph, without those of text boxes in it."""
    found = []
    for child in element:
        if child.tag == f"{W}r":
            found.append(child)
        elif child.tag in _AROUND:
            found += _runs(child)
    return found


def _merge(element: Any, usual: str) -> None:
    """Join neighbouring runs of one format, and make plain text of those of the usual format."""
    parts: list[Any] = []
    for child in list(element):
        same = parts and child.tag == RUN and not isinstance(parts[-1], str) and parts[-1].tag == RUN
        if child.tag == RUN and child.get("format") == usual:
            parts.append(child.text or "")
        elif same and parts[-1].get("format") == child.get("format"):
            parts[-1].text += child.text or ""
        else:
            parts.append(child)
    fill_element(element, parts)


_ODT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_ODT_PARTS = ("content.xml", "styles.xml")  # headers and footers are in the second


class Odt:
    """A text document; each line of a paragraph is a segment."""

    def __init__(self, data: bytes, name: str) -> None:
        self._files = unpacked(data, name)
        if "content.xml" not in self._files:
            raise DataError("expected an OpenDocument text with content.xml, got another archive", path=name)
        self._roots = {
            part: parsed(self._files[part], name, part) for part in _ODT_PARTS if part in self._files
        }
        elements = [one for root in self._roots.values() for one in root.iter(f"{_ODT}p", f"{_ODT}h")]
        self._texts = MarkupTexts(elements, _odt_role)
        self.segments = self._texts.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The document with the translations of its segments."""
        self._texts.fill(found)
        return packed({**self._files, **{part: written(root) for part, root in self._roots.items()}})


def _odt_role(element: Any) -> Role:
    if element.tag in (f"{_ODT}span", f"{_ODT}a", f"{_ODT}ruby-base"):
        return "inline"
    return "break" if element.tag in (f"{_ODT}line-break", f"{_ODT}tab") else "point"
