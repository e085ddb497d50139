"""Content received instead of a file: its kind, and a temporary file for code that reads files.

Read next: images.py, audio.py, series.py, which read such files.
"""

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from weft.data.files import file_bytes
from weft.data.lines import LONGEST
from weft.data.magic import START, kind_of_bytes
from weft.data.report import Finding
from weft.data.tables import TableFile, header_of, kind_of
from weft.errors import ConfigError, DataError, DataWarning

STREAM = "standard input"

_PACKED = re.compile(rb"PK\x03\x04|PAR1|\xd0\xcf\x11\xe0")
"""How workbooks and Parquet files begin."""

_COMPRESSED = re.compile(rb"\x1f\x8b|BZh|\xfd7zXZ\x00|\x28\xb5\x2f\xfd")
"""How gzip, bzip2, xz and zstandard begin."""

_names: dict[Path, str] = {}  # what users call the temporary files that there are now


def name_of(source: Path | BinaryIO) -> str:
    """The name of a source in an error."""
    return _names.get(source, str(source)) if isinstance(source, Path) else STREAM


def folder_of(source: Path | BinaryIO) -> Path:
    """The folder in which the files are that a list names without one."""
    return source.parent if isinstance(source, Path) and source not in _names else Path()


@contextmanager
def held(content: bytes, name: str, ending: str = "") -> Iterator[Path]:
    """A temporary file with this content; errors name `name` instead of it."""
    kind = kind_of_bytes(content)
    if not ending and kind is not None and kind.holds in ("picture", "sound"):
        ending = kind.ending
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder) / f"file{ending}"
        path.write_bytes(content)
        _names[path] = name
        try:
            yield path
        except DataError as error:
            if error.path == str(path):
                why = error.why.replace(str(path), name).replace(str(path.with_suffix("")), name)
                raise DataError(why, path=name, line=error.line) from None
            raise DataError(str(error).replace(str(path), name)) from None
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), name)) from None
        finally:
            del _names[path]


@contextmanager
def table_as_file(
    source: Path | BinaryIO, is_header: Callable[[Sequence[str]], bool]
) -> Iterator[Path | BinaryIO]:
    """A source as it is; of a stream that begins like a table, all of it in a temporary file.

    `is_header` says whether the cells of the first line, or keys of a record, name what the model reads.
    """
    if isinstance(source, Path) or source.isatty():
        yield source
        return
    begin = source.readline(LONGEST)
    if _COMPRESSED.match(begin):
        with held(begin + source.read(), STREAM) as path:
            source = BytesIO(b"".join(file_bytes(path)))
        begin = source.readline(LONGEST)
    if not begin.strip(b"[ \r\n") and begin.strip():  # of a list of records, whose first is on the next line
        begin += source.readline(LONGEST)
    if not begin:
        raise DataError("the input is empty; give at least one line", path=STREAM)
    packed, cells = _PACKED.match(begin), _cells(begin)
    if not (packed or is_header(cells)):
        yield _Begun(begin, source)  # type: ignore[misc]
        return
    content = begin + source.read()
    ending = ending_of(content)
    with held(content, STREAM, ending) as path:
        if not (is_header(header_of(path)) if packed else len(cells) > 1 or _is_sound(path)):
            yield _Begun(content, source)  # type: ignore[misc]
            return
        warnings.warn(f"{STREAM}: read as a {ending} table", DataWarning, stacklevel=1)
        yield path


def ending_of(content: bytes) -> str:
    r"""The ending that a table has in its name, by its first bytes: .csv unless it is something else.

    Example:
        >>> ending_of(b"PAR1..."), ending_of(b'{"text": "a"}'), ending_of(b"date;load"), ending_of(b"a\tb")
        ('.parquet', '.jsonl', '.csv', '.tsv')
    """
    kind = kind_of_bytes(content[:START])
    if _PACKED.match(content) and kind is not None:
        return ".xls" if kind.ending == ".doc" else kind.ending
    text = content[:START].removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"{", b"["):
        return ".jsonl" if text[:1] == b"{" else ".json"
    first = text.partition(b"\n")[0]
    return ".tsv" if b"\t" in first and not re.search(rb"[,;]", first) else ".csv"


def _is_sound(path: Path) -> bool:
    """Whether this is a table of one column; not texts, of which the first is the name of a column."""
    return kind_of(path) != ".csv" or not any(isinstance(row, Finding) for row in TableFile(path).rows())


def _cells(begin: bytes) -> list[str]:
    """The cells of a table's first line, or the names in a record."""
    wide = begin.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = begin.decode("utf-16" if wide else "utf-8-sig", "replace").strip()
    if text.startswith(("{", "[")):
        return re.findall(r'"([^"]*)"\s*:', text)
    return [cell.strip().strip('"') for cell in re.split("[,;\t]", text)]


class _Begun:
    """A stream whose beginning is read already."""

    def __init__(self, begin: bytes, rest: BinaryIO) -> None:
        self._begin = begin
        self._rest = rest
        self.name = STREAM

    def read(self, size: int) -> bytes:
        begin, self._begin = self._begin, b""
        return begin or getattr(self._rest, "read1", self._rest.read)(size)

    def isatty(self) -> bool:
        return False
