r"""Read the lines of a text file or stream, split only at LF.

U+2028, NEL and form feed are part of a line; CRLF counts as LF, and so does CR in a file where it ends most
lines; a byte order mark is dropped, one of UTF-16 or UTF-32 says how the file is decoded; the last line needs
no LF. Errors name file:line. Read next: files.py, which reads the bytes; tables.py, columns; parallel.py, two
files side by side.
"""

import codecs
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from weft.data.files import file_bytes, stream_bytes
from weft.data.magic import not_text
from weft.data.report import Finding, placed
from weft.errors import DataError

LONGEST = 16 * 2**20
"""Maximum bytes of a line; longer ones suggest a binary file or other line ends."""

PROSE = 20_000
"""Bytes of a line of running text above which it is read as several, such as the only line of text8."""

PIECE = 1_000  # maximum bytes of each of them; a letter is not split

_PIECES = re.compile(rb"(?s)(.{1,%d})(?: (?=.)|\Z)|(.{%d}[\x80-\xbf]*)" % (PIECE, PIECE))

BYTE_ORDERS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, the longer first where one begins with another."""


_CUT = re.compile(r"@@(?= |$)|▁|(?<=\s)@-@(?=\s)|&apos;|&#9[13];|&#124;")
"""Marks of subword-nmt, SentencePiece and Moses."""

_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


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
    r"""Like `read_lines`, with an error instead of a line that is not UTF-8; or in another encoding."""
    if isinstance(file, str | Path):
        return _decoded(text_bytes(file, encoding), str(file))
    name = str(getattr(file, "name", "input"))
    return _decoded(_lined(_unmarked(stream_bytes(file), name, encoding)), name)


def numbered_lines(file: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str] | Finding]:
    """The lines with their numbers, and a finding for each that is not UTF-8 and for a file cut short."""
    try:
        for number, line in enumerate(each_line(file, encoding), 1):
            yield placed(str(file), line, "bytes") if isinstance(line, DataError) else (number, line)
    except DataError as error:
        yield placed(str(file), error)


def prose_lines(file: str | Path) -> Iterator[str]:
    """Like `read_lines`, of running text: a very long line is read as several."""
    return map(_readable, _decoded(_folded(text_bytes(file)), str(file)))


def folding(file: str | Path) -> list[str]:
    """A note if `prose_lines` reads a line at the beginning of a file as several."""
    try:
        start = next(text_bytes(file), b"")
    except DataError:
        return []  # named where the file is read
    if len(max(start.split(b"\n"), key=len)) <= PROSE:
        return []
    return [
        f"{file}: lines longer than {PROSE:,} bytes are read as lines of at most {PIECE:,}, cut at spaces"
    ]


def raw_lines(file: str | Path, encoding: str = "utf-8", *, prose: bool = False) -> Iterator[bytes | Finding]:
    """The lines as bytes, and a final Finding if the file cannot be read completely."""
    try:
        parts = text_bytes(file, encoding)
        for _, whole in blocks(_folded(parts) if prose else parts, str(file)):
            for line in whole.removesuffix(b"\n").split(b"\n"):
                yield line.removesuffix(b"\r")
    except DataError as error:
        yield placed(str(file), error)


def text_bytes(path: str | Path, encoding: str = "utf-8") -> Iterator[bytes]:
    """The bytes of a text file in UTF-8, without a byte order mark and with LF."""
    return _lined(_unmarked(file_bytes(path), path, encoding))


def blocks(parts: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines: the number of the first line, and their bytes."""
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
    """Why a line is not UTF-8 text, with advice; None if it is."""
    if b"\0" in line:
        return f"a NUL byte, so this is not UTF-8 text; {advice(file, line)}"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at position {error.start + 1} of the line"
        return f"not UTF-8 ({where}); {advice(file, line)}"
    return None


def line_findings(line: bytes, file: str, number: int, control: str = "remove it") -> Iterator[Finding]:
    """What is wrong with the text of a line."""
    text = line.decode("utf-8", errors="replace")
    if "\ufffd" in text or "\0" in text:
        what = "U+FFFD, a character that an earlier conversion lost; correct or remove the line"
        wrong = wrong_bytes(line, file)
        yield Finding(file, number, "bytes" if wrong else "damaged", wrong or what)
    if found := _CUT.search(text):
        yield Finding(file, number, "cut", _undone(found.group(), file))
    if found := _CONTROL.search(text):
        yield Finding(file, number, "control", f"U+{ord(found.group()):04X} inside the line; {control}")


def _undone(mark: str, file: str) -> str:
    """What undoes the cutting of a text, by one of its marks."""
    name = shlex.quote(file)
    if mark.strip() == "@@":
        how = f"sed -r 's/@@( |$)//g' {name} > TEXT"
    elif "▁" in mark:
        how = f"sed 's/ //g; s/▁/ /g; s/^ //' {name} > TEXT"
    else:
        how = f"sacremoses -l LANGUAGE detokenize < {name} > TEXT, after pip install sacremoses"
    return (
        f"{mark.strip()!r} is a mark of a program that cut the text, which Weft does itself; undo it: {how}"
    )


def _unmarked(parts: Iterable[bytes], path: str | Path, encoding: str = "utf-8") -> Iterator[bytes]:
    """The parts in UTF-8, without a byte order mark, which may be split across them."""
    parts = iter(parts)
    start = b""
    for part in parts:
        start += part
        if len(start) >= 4 or not any(mark.startswith(start) for mark in BYTE_ORDERS):
            break
    if why := not_text(start, str(path)):
        raise DataError(why, path=path)
    mark = next((mark for mark in BYTE_ORDERS if start.startswith(mark)), b"")
    name = BYTE_ORDERS.get(mark, encoding)
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


def _folded(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts with LF for spaces in very long lines, so that each has at most about PIECE bytes."""
    held, within = b"", False
    for part in parts:
        *whole, held = (held + part).split(b"\n")
        for line in whole:
            yield b"\n".join(_cut_line(line) if within or len(line) > PROSE else [line]) + b"\n"
            within = False
        within = within or len(held) > PROSE
        if within:
            *pieces, held = _cut_line(held)
            yield b"".join(piece + b"\n" for piece in pieces)
    yield held


def _cut_line(line: bytes) -> list[bytes]:
    """A line as pieces that end at a space, or where there is none, after a letter."""
    return [before or within for before, within in _PIECES.findall(line)] or [line]


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


SAMPLE = 2**20  # bytes read of a file

FEW = 20  # bytes beyond ASCII below which a file may be in one of several encodings

ENCODINGS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "iso8859-2"),
    *("koi8-r", "cp866", "cp874", "cp932", "cp949", "euc-jp", "gb18030", "big5"),
)
"""Those that are looked for: with rarer ones, more texts would be unclear."""

_MIXED = "mixed"


def guess(sample: bytes) -> tuple[str, ...]:
    """The likely encodings of bytes that are not UTF-8, by iconv's names; several where few letters tell."""
    from chardet import detect_all

    if 0 in sample:
        even, odd = (sample[place::2].count(0) > len(sample) // 8 for place in (0, 1))
        return () if even == odd else ("UTF-16BE",) if even else ("UTF-16LE",)
    judged = b"\n".join(line for line in sample.split(b"\n") if not line.isascii())
    found = detect_all(judged, ignore_threshold=True, include_encodings=ENCODINGS) if judged else []
    texts = dict[str, str]()
    for one in found:
        if one["encoding"] and one["confidence"] > found[0]["confidence"] / 4:
            texts.setdefault(judged.decode(one["encoding"], "replace"), one["encoding"].upper())
    few = sum(byte > 127 for byte in judged) < FEW
    return tuple(texts.values())[: 3 if few else 1]


def advice(file: str, line: bytes) -> str:
    """A command that converts a file to UTF-8, or general advice if the encoding is unclear."""
    path = Path(file)
    if find_spec("chardet") is None:
        name = "pip install 'weft-seq[encodings]' for the name of its encoding"
        return f"convert the file (iconv -f ENCODING -t UTF-8), or {name}"
    found = () if 0 in line else guess(line)
    try:
        about = path.stat()
        found, plain = _guessed(file, about.st_size, about.st_mtime_ns) or found, path.is_file()
    except (OSError, ValueError):
        plain = False
    if found == (_MIXED,):
        return "other lines are UTF-8, so correct or remove the line"
    if not found:
        return "convert the file (iconv -f ENCODING -t UTF-8) or remove the line"
    command = f"iconv -f {found[0]} -t UTF-8"
    if plain and path.suffix not in (".gz", ".xz", ".zst"):
        other = path.with_name(f"{path.stem}.utf8{path.suffix}")
        command = f"{command} {shlex.quote(file)} > {shlex.quote(str(other))}"
    if len(found) == 1:
        return f"convert the file, probably {found[0]}: {command}"
    shown = ", or ".join(f"{_odd_word(line, name)} in {name}" for name in found)
    return f"the encoding is unclear: {shown}; convert the file, or remove the line; for the first: {command}"


def _odd_word(line: bytes, encoding: str) -> str:
    """The first word beyond ASCII of a line."""
    words = re.split(r"[\s\",;]+", line.decode(encoding, "replace"))
    return next((word for word in words if not word.isascii()), "")[:30]


@lru_cache(maxsize=16)
def _guessed(file: str, size: int, changed: int) -> tuple[str, ...]:
    """The encoding of a file from its first bytes; `size` and `changed` make the cache key."""
    with open(file, "rb") as opened:
        sample = opened.read(SAMPLE)
    for line in sample.split(b"\n")[:-1] if 0 not in sample else ():
        try:
            if not line.isascii() and line.decode("utf-8"):
                return (_MIXED,)
        except UnicodeDecodeError:
            continue
    return guess(sample)
