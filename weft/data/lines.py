r"""Read the lines of a text file or stream, split only at LF.

U+2028, NEL and form feed are part of a line; CRLF counts as LF, and so does CR in a file where it ends most
lines; a byte order mark is dropped, one of UTF-16 or UTF-32 says how the file is decoded; the last line needs
no LF. Errors name file:line. Read next: files.py, which reads the bytes; tables.py, columns; parallel.py, two
files side by side.
"""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from weft.data.encodings import advice
from weft.data.files import file_bytes, stream_bytes
from weft.data.magic import not_text
from weft.data.report import Finding, placed
from weft.errors import DataError

LONGEST = 16 * 2**20
"""Maximum bytes of a line; longer ones suggest a binary file or other line ends."""

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, the longer first where one begins with another."""


def read_lines(file: str | Path | BinaryIO) -> Iterator[str]:
    r"""All lines without their ends, including empty lines.

    Args:
        file: a path, plain or .gz, .xz, .zst, which must exist and not be empty (checked at once); or an
            open binary stream such as sys.stdin.buffer, read as data arrives, which may be empty.

    Raises:
        DataError: the file is missing, empty, a directory, unreadable or damaged; or a line is not UTF-8.

    Example:
        >>> import io
        >>> list(read_lines(io.BytesIO("one\u2028still one\r\n\r\nthree".encode())))
        ['one\u2028still one', '', 'three']
    """
    return map(_readable, each_line(file))


def each_line(file: str | Path | BinaryIO, encoding: str = "utf-8") -> Iterator[str | DataError]:
    r"""Like `read_lines`, with an error instead of a line that is not UTF-8; or in another encoding.

    Raises:
        DataError: the file is missing, empty, a directory, unreadable or damaged; or its first line has a
            NUL byte, so it is binary or UTF-16.

    Example:
        >>> import io
        >>> [str(line) for line in each_line(io.BytesIO(b"one\ncaf\xe9\nthree"))][::2]
        ['one', 'three']
    """
    if isinstance(file, str | Path):
        return _decoded(text_bytes(file, encoding), str(file))
    name = str(getattr(file, "name", "input"))
    return _decoded(_unmarked(stream_bytes(file), name, encoding), name)


def raw_lines(file: str | Path, encoding: str = "utf-8") -> Iterator[bytes | Finding]:
    """The lines as bytes, and a final Finding if the file cannot be read completely."""
    try:
        for _, whole in blocks(text_bytes(file, encoding), str(file)):
            for line in whole.removesuffix(b"\n").split(b"\n"):
                yield line.removesuffix(b"\r")
    except DataError as error:
        yield placed(str(file), error)


def text_bytes(path: str | Path, encoding: str = "utf-8") -> Iterator[bytes]:
    """The bytes of a text file in UTF-8, without a byte order mark and with LF.

    Args:
        path: of the file, possibly compressed.
        encoding: of a file that has no byte order mark; bytes that are not in it become U+FFFD. With UTF-8
            they stay as they are, so that the reader can name their line.

    Raises:
        DataError: at once if the file is missing, empty, a directory or unreadable; while reading if it is
            damaged, or a workbook or a document instead of text.
    """
    return _lined(_unmarked(file_bytes(path), path, encoding))


def blocks(parts: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines: the number of the first line, and their bytes.

    Args:
        parts: the bytes of a file in UTF-8, split anywhere; see `text_bytes`.
        name: of the file, for the error.

    Raises:
        DataError: it is a picture, a document or another file without plain text; or a line is longer than
            LONGEST.
    """
    first = 1
    held: list[bytes] = []  # the incomplete last line
    size = 0
    for part in parts:
        end = part.rfind(b"\n") + 1
        if end:
            whole = b"".join([*held, part[:end]])
            yield first, whole
            first += whole.count(b"\n")
            held, size = [], 0
        held.append(part[end:])
        size += len(part) - end
        if size > LONGEST:
            most = f"{LONGEST // 2**20} MiB"
            raise DataError(
                f"a line longer than {most}; give a text file, LF after each line", path=name, line=first
            )
    if size:
        yield first, b"".join(held)


def wrong_bytes(line: bytes, file: str = "") -> str | None:
    """Why a line is not UTF-8 text, with advice; None if it is.

    Args:
        line: its bytes.
        file: its file, for guessing the encoding and suggesting a command.
    """
    if b"\0" in line:
        return f"a NUL byte, so this is not UTF-8 text; {advice(file, line)}"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at position {error.start + 1} of the line"
        return f"not UTF-8 ({where}); {advice(file, line)}"
    return None


def _unmarked(parts: Iterable[bytes], path: str | Path, encoding: str = "utf-8") -> Iterator[bytes]:
    """The parts in UTF-8, without a byte order mark, which may be split across them."""
    parts = iter(parts)
    start = b""
    for part in parts:
        start += part
        if len(start) >= 4 or not any(mark.startswith(start) for mark in _MARKS):
            break
    if why := not_text(start, str(path)):
        raise DataError(why, path=path)
    mark = next((mark for mark in _MARKS if start.startswith(mark)), b"")
    name = _MARKS.get(mark, encoding)
    parts = chain([start.removeprefix(codecs.BOM_UTF8)], parts)
    if codecs.lookup(name).name == "utf-8":
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(name)("replace")
    for part in parts:
        yield decoder.decode(part).encode()
    yield decoder.decode(b"", final=True).encode()


def _lined(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts with LF for each CR and CRLF, if most lines of the first part end with CR alone."""
    first = next(parts, b"")
    crlf = first.count(b"\r\n")
    if first.count(b"\r") - crlf <= first.count(b"\n") - crlf:
        yield first
        yield from parts
        return
    held = b""  # a CR at the end, which may be half of a CRLF
    for part in chain([first], parts):
        whole = held + part
        held = b"\r" if whole.endswith(b"\r") else b""
        yield whole.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    yield held.replace(b"\r", b"\n")


def _readable(line: str | DataError) -> str:
    if isinstance(line, DataError):
        raise line
    return line


def _decoded(parts: Iterable[bytes], name: str) -> Iterator[str | DataError]:
    for first, whole in blocks(parts, name):
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            # Find the wrong line; checking every line from the start would be slower.
            for number, line in enumerate(whole.removesuffix(b"\n").split(b"\n"), first):
                wrong = wrong_bytes(line, name)
                error = DataError(wrong, path=name, line=number) if wrong else None
                if error and number == 1 and b"\0" in line:
                    raise error
                yield error or line.removesuffix(b"\r").decode("utf-8")
            continue
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        yield from text.removesuffix("\n").split("\n")
