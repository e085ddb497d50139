"""Lists of files with a text each: pictures with captions, recordings with transcripts.

Read next: tables.py, which reads them; captions.py and audio.py, which use them.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from weft.data.lines import each_line
from weft.data.report import Finding, placed
from weft.data.tables import HEAD, TableFile, is_table
from weft.errors import DataError, DataWarning

FILES = ["file", "path", "image", "image_name", "file_name", "filename", "audio", "audio_filepath", "wav"]
TEXTS = ["text", "comment", "transcript", "transcription", "sentence"]
"""Further names of columns, in any letter case; of several, the first here."""

_NUMBERED = re.compile(r"(\.[A-Za-z]{3,4})#\d+$")  # a.jpg#0, the first caption of a.jpg in Flickr8k


class ListedText(NamedTuple):
    """A row of a list."""

    number: int  # of the line or row, from 1
    file: str
    text: str


def listed(path: Path, form: str) -> Iterator[ListedText | Finding]:
    """All rows of a list, or a finding for each that is damaged; reading continues after it.

    A table has two columns, or a header with columns called as in `form`, FILES and TEXTS. Any
    other file has a file name and a text in each line, with a tab between.
    """
    if is_table(path) and not is_ljspeech(path):
        yield from _rows(path, form)
        return
    cells_of, wanted = _line_form(path, form)
    for number, line in enumerate(each_line(path), 1):
        if isinstance(line, DataError):
            yield placed(str(path), line, "bytes")
        elif line.strip():
            cells = cells_of(line)
            yield _row(number, cells, 0, 1) if len(cells) == 2 else _wrong(path, number, wanted, cells)


def _line_form(path: Path, form: str) -> tuple[Callable[[str], list[str]], str]:
    """What makes the name of a file and its text of a line, and what it expects."""
    if is_ljspeech(path):
        return _ljspeech, "expected ID|TEXT"
    if is_librispeech(path):
        return _librispeech, "expected ID TEXT"
    return (lambda line: line.split("\t")), f"expected 2 columns ({form})"


def _ljspeech(line: str) -> list[str]:
    name, *texts = line.split("|")
    return [f"wavs/{name}.wav", *texts[-1:]]


def _librispeech(line: str) -> list[str]:
    name, *texts = line.strip().split(maxsplit=1)
    return [f"{name}.flac", *texts]


def _rows(path: Path, form: str) -> Iterator[ListedText | Finding]:
    table = TableFile(path)
    file, text, header = columns(table, form)
    if text is None:
        names = " and ".join(form.lower().split(" tab "))
        wanted = f"expected 2 columns ({form}), or a header with {names}"
        raise _wrong(path, table.number, wanted, table.first).error()
    for note in table.notes:
        warnings.warn(note, DataWarning, stacklevel=1)
    for row in islice(table.rows(), header, None):
        if isinstance(row, Finding):
            yield row
        else:
            found = _row(row.number, row.cells, file, text)
            yield found._replace(file=inside(path.parent, found.file))


def inside(folder: Path, file: str) -> str:
    """The name of a file in a folder; Common Voice leaves out that its recordings are in clips."""
    plain = "/" not in file and len(file) < 256
    return f"clips/{file}" if plain and (folder / "clips" / file).is_file() else file


def lists_files(path: Path, form: str, endings: tuple[str, ...]) -> bool:
    """Whether the files that the first rows of a list name have these endings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes, which come again when it is read
        rows = list(islice(listed(path, form), HEAD))
    return bool(rows) and all(
        isinstance(row, ListedText) and row.file.lower().endswith(endings) for row in rows
    )


def is_ljspeech(path: Path) -> bool:
    """Whether this is the metadata.csv of LJSpeech: ID|TEXT|TEXT IN WORDS, with wavs/ID.wav, unquoted."""
    if path.name != "metadata.csv":
        return False
    first = next(each_line(path))
    name, mark, _ = str(first).partition("|")
    return bool(mark) and len(name) < 256 and (path.parent / "wavs" / f"{name}.wav").is_file()


def is_librispeech(path: Path) -> bool:
    """Whether this is a .trans.txt of LibriSpeech: ID TEXT, with ID.flac beside it."""
    return path.name.endswith(".trans.txt") and "\t" not in str(next(each_line(path), ""))


def columns(table: TableFile, form: str) -> tuple[int, int | None, bool]:
    """The columns of the files and of the texts, and whether the first row is a header.

    Without a header, the text has no column unless there are two.
    """
    own = form.lower().split(" tab ")
    file, text = ([table.find(name) for name in names] for names in ([own[0], *FILES], [own[1], *TEXTS]))
    first = next((one for one in file if one is not None), None)
    second = next((one for one in text if one is not None), None)
    if first is not None and (second is not None or len(table.first) == 1):
        return first, second, True
    return 0, 1 if len(table.first) == 2 else None, False


def names_file(cells: Sequence[str], form: str) -> bool:
    """Whether several cells of a header name the column of the files."""
    names = {cell.casefold() for cell in cells}
    return len(names) > 1 and not names.isdisjoint([form.lower().split(" tab ")[0], *FILES])


def _row(number: int, cells: list[str], file: int, text: int) -> ListedText:
    name = _NUMBERED.sub(r"\1", cells[file].strip())
    return ListedText(number, name, " ".join(cells[text].split()))


def _wrong(path: Path, number: int, what: str, cells: list[str]) -> Finding:
    return Finding(str(path), number, "columns", f"{what}, got {len(cells)}; correct or remove the line")
