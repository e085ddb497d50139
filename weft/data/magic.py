"""What a file is by its first bytes, whatever its name says, and what to type if something else was expected.

Read next: lines.py, images.py and audio.py, which ask.
"""

import re
import shlex
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from weft.errors import DataError

START = 2**16  # number of bytes that are enough to tell

Holds = Literal["picture", "sound", "writing", "table", "archive", "numbers", "other"]
UNLISTED: tuple[Holds, ...] = ("picture", "sound", "writing")
"""What no list of files holds, and no compressed one."""


class FileKind(NamedTuple):
    """A kind of file that is not plain text."""

    name: str  # with its article, for a sentence
    ending: str
    holds: Holds
    command: str = ""  # makes plain text, a picture or a wav file of FILE


_TO_TEXT = "pandoc FILE -t plain --wrap=none -o TEXT"
_TO_CSV = "soffice --headless --convert-to csv FILE"
_PANDAS = 'python -c "import pandas as pd; pd.{}(NAME).to_csv(AS_CSV, index=False)"'
_OLD = "soffice --headless --convert-to txt FILE"
_TO_WAV = "ffmpeg -i FILE WAV"

_ZIPPED = (
    (rb"PK\x03\x04.{26}word/", FileKind("a Word document", ".docx", "writing", _TO_TEXT)),
    (rb"PK\x03\x04.{26}xl/", FileKind("an Excel workbook", ".xlsx", "table", _TO_CSV)),
    (rb"PK\x03\x04.{26}ppt/", FileKind("a PowerPoint presentation", ".pptx", "writing", _TO_TEXT)),
    (rb"opendocument\.text", FileKind("an OpenDocument text", ".odt", "writing", _TO_TEXT)),
    (rb"opendocument\.spreadsheet", FileKind("an OpenDocument spreadsheet", ".ods", "table", _TO_CSV)),
    (rb"Index/[A-Za-z]+\.iwa", FileKind("a document of Numbers, Pages or Keynote", "", "writing")),
    (rb"application/epub\+zip", FileKind("an EPUB book", ".epub", "writing", _TO_TEXT)),
)
_ZIP = FileKind("a .zip archive", ".zip", "archive", "unzip FILE")
_KINDS = tuple(
    (re.compile(begin, re.DOTALL), kind)
    for begin, kind in (
        (rb"\x89PNG\r\n\x1a\n", FileKind("a PNG picture", ".png", "picture")),
        (rb"\xff\xd8\xff", FileKind("a JPEG picture", ".jpg", "picture")),
        (rb"GIF8[79]a", FileKind("a GIF picture", ".gif", "picture")),
        (rb"BM.{4}\0{4}", FileKind("a BMP picture", ".bmp", "picture")),
        (rb"RIFF.{4}WEBP", FileKind("a WebP picture", ".webp", "picture")),
        (rb"II\*\0|MM\0\*|II\+\0|MM\0\+", FileKind("a TIFF picture", ".tif", "picture")),
        (
            rb".{4}ftyp(hei|hev|mif1|msf1)",
            FileKind("a HEIC picture", ".heic", "picture", "magick FILE PNG"),
        ),
        (rb".{4}ftypavi[fs]", FileKind("an AVIF picture", ".avif", "picture")),
        (rb"(RIFF|RIFX|RF64|BW64).{4}WAVE", FileKind("a wav file", ".wav", "sound")),
        (rb"fLaC", FileKind("a FLAC file", ".flac", "sound")),
        (rb"OggS", FileKind("an Ogg file", ".ogg", "sound")),
        (rb"FORM.{4}AIF[FC]", FileKind("an AIFF file", ".aiff", "sound")),
        (rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", FileKind("an MP3 file", ".mp3", "sound")),
        (rb"caff", FileKind("a CAF file", ".caf", "sound")),
        (rb"\.snd", FileKind("an AU file", ".au", "sound")),
        (rb"\xff[\xf0\xf1\xf8\xf9]", FileKind("an AAC file", ".aac", "sound", _TO_WAV)),
        (rb".{4}ftyp", FileKind("an MPEG-4 recording", ".m4a", "sound", _TO_WAV)),
        (rb"\x1aE\xdf\xa3", FileKind("a WebM or Matroska recording", ".webm", "sound", _TO_WAV)),
        (rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11", FileKind("a WMA recording", ".wma", "sound", _TO_WAV)),
        (rb"#!AMR", FileKind("an AMR recording", ".amr", "sound", _TO_WAV)),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileKind("an old Office file", ".doc", "writing", _OLD)),
        (rb"%PDF-", FileKind("a PDF", ".pdf", "writing", "pdftotext FILE TEXT")),
        (rb"\{\\rtf", FileKind("an RTF document", ".rtf", "writing", _TO_TEXT)),
        (rb"PK\x03\x04|PK\x05\x06", _ZIP),
        (rb"\x1f\x8b", FileKind("a gzip file", ".gz", "archive", "gunzip FILE")),
        (rb"BZh[1-9]", FileKind("a bzip2 file", ".bz2", "archive", "bunzip2 FILE")),
        (rb"7z\xbc\xaf\x27\x1c", FileKind("a 7z archive", ".7z", "archive", "7z x FILE")),
        (rb"Rar!\x1a\x07", FileKind("a RAR archive", ".rar", "archive", "unrar x FILE")),
        (rb".{257}ustar", FileKind("a tar archive", ".tar", "archive", "tar xf FILE")),
        (rb"\x93NUMPY", FileKind("an array of NumPy", ".npy", "numbers")),
        (rb"\xba\x16\x4f\x2f", FileKind("a model of fastText", ".ftz", "numbers")),
        (rb"PAR1", FileKind("a Parquet table", ".parquet", "numbers")),
        (rb"ARROW1\0\0", FileKind("a Feather table", ".feather", "table", _PANDAS.format("read_feather"))),
        (rb"ORC.{8}", FileKind("an ORC table", ".orc", "table", _PANDAS.format("read_orc"))),
        (
            rb"<stata_dta>|[\x71-\x73][\x01\x02]\x01\0",
            FileKind("a Stata table", ".dta", "table", _PANDAS.format("read_stata")),
        ),
        (
            rb"\0{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}LIBRARY",
            FileKind("a SAS table", ".sas7bdat", "table", _PANDAS.format("read_sas")),
        ),
        (rb"\$FL[23]@\(#\)", FileKind("an SPSS table", ".sav", "table", _PANDAS.format("read_spss"))),
        (rb"\x89HDF\r\n\x1a\n", FileKind("an HDF5 file", ".h5", "numbers")),
        (rb"\x80[\x02-\x05].{2}", FileKind("a pickle of Python", ".pkl", "numbers")),
        (
            rb"version https://git-lfs\.github\.com/spec/",
            FileKind("a Git LFS pointer (type git lfs pull)", ".lfs", "other"),
        ),
        (rb"(?i)\s*<(!DOCTYPE html|html)\b", FileKind("a web page", ".html", "other")),
        (rb"(<\?xml[^>]*>\s*)?<svg\b", FileKind("an SVG drawing", ".svg", "picture", "magick FILE PNG")),
        (rb"SQLite format 3", FileKind("an SQLite database", ".sqlite", "other")),
        (rb"\x7fELF|MZ.{58}", FileKind("a program", "", "other")),
    )
)
_TEXTUAL = (
    ".zip",
    ".pdf",
    ".rtf",
    ".dta",
    ".sav",
    ".lfs",
)  # all others have a NUL byte or bytes that are not UTF-8 near their start


def kind_of_bytes(start: bytes) -> FileKind | None:
    """The kind of file that begins with these bytes; None for plain text and anything unknown."""
    found = next((kind for begin, kind in _KINDS if begin.match(start)), None)
    if found is _ZIP:
        inner = start[:START]
        return next((kind for name, kind in _ZIPPED if re.search(name, inner, re.DOTALL)), _ZIP)
    return found


def kind_of_file(path: Path) -> FileKind | None:
    """The kind of a file; None for plain text, and if it cannot be read."""
    try:
        with path.open("rb") as file:
            return kind_of_bytes(file.read(START))
    except OSError:
        return None


def not_text(start: bytes, file: str) -> str | None:
    """Why a file that begins with these bytes is not plain text, and what to type; None if it may be text."""
    kind = kind_of_bytes(start)
    if kind is None or not (kind.ending in _TEXTUAL or _binary(start)):
        return None
    if kind.ending == ".doc" and file.lower().endswith(".xls"):
        kind = FileKind("an old Excel workbook", ".xls", "table", _TO_CSV)
    what = f"expected plain text, got {kind.name}"
    if kind.holds in ("picture", "sound"):
        return f"{what}; name a text file"
    if not kind.command:
        return f"{what}; save it as plain text, or name another file"
    if kind.holds == "archive":
        return f"{what}; unpack it: {typed_for(kind, file)}"
    convert = f"convert it: {typed_for(kind, file)}"
    if kind.ending in (".docx", ".odt"):
        name = shlex.quote("FILE" if file.startswith("<") else file)
        return f"{what}; to translate it: weft predict RUN --document {name}; or {convert}"
    if kind.command == _TO_CSV and not file.lower().endswith(kind.ending):
        return f"{what}; name it {kind.ending} where a table is read, or {convert}"
    return f"{what}; {convert}"


def misread(start: bytes, file: str, wanted: Literal["picture", "sound"], reader: str) -> str | None:
    """Why a file that begins with these bytes is no picture or sound of a reader; None if they do not say."""
    kind = kind_of_bytes(start)
    if not start:
        return "the file is empty; fetch or save it again, or remove it"
    if kind is None or (kind.holds == wanted and not kind.command):
        return None
    if kind.holds == wanted:
        return f"{kind.name}, which {reader} does not read; convert it: {typed_for(kind, file)}"
    noun = "recording" if wanted == "sound" else wanted
    return f"expected a {noun}, got {kind.name}; name another file, or remove it"


_MARKUP = (".html", ".svg")
"""Kinds of files that are text, so that any text file may begin like them."""


def check_document(data: bytes, name: str) -> None:
    """Check that the content of a document to translate is not of another kind than its name says."""
    if not data:
        raise DataError("the file is empty; name another one", path=name)
    kind, ending = kind_of_bytes(data[:START]), PurePath(name).suffix.lower()
    packed = ending in (".docx", ".odt") and kind in (
        _ZIP,
        *(one for _, one in _ZIPPED if one.ending == ending),
    )
    if kind is None or packed or kind.ending in _MARKUP:
        return
    if kind.ending in (".docx", ".odt"):
        raise DataError(f"{kind.name}; name it {PurePath(name).stem}{kind.ending}", path=name)
    as_docx = "soffice --headless --convert-to docx FILE"
    kind = kind._replace(command=as_docx) if kind.ending in (".doc", ".rtf") else kind
    advice = f"convert it: {typed_for(kind, name)}" if kind.command else "name another file"
    raise DataError(f"expected a document, got {kind.name}; {advice}", path=name)


def typed_for(kind: FileKind, file: str) -> str:
    """The command that converts a file of this kind."""
    file = "FILE" if file.startswith("<") else file  # not the name of a stream, such as <stdin>
    stem = file[: -len(kind.ending)] if file.lower().endswith(kind.ending) else file
    if "NAME" in kind.command:
        file, stem = (file, stem) if re.fullmatch(r"[\w./ @+-]+", file) else ("FILE", "FILE")
        return kind.command.replace("NAME", repr(file)).replace("AS_CSV", repr(f"{stem}.csv"))
    names = {"FILE": file, "TEXT": f"{stem}.txt", "WAV": f"{stem}.wav", "PNG": f"{stem}.png"}
    return " ".join(shlex.quote(names[word]) if word in names else word for word in kind.command.split())


def _binary(start: bytes) -> bool:
    """Whether bytes cannot be UTF-8 text."""
    head = start[:512]
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end < len(head) or b"\0" in head
    return b"\0" in head
