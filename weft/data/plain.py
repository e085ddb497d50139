"""Plain text: the lines of a file, of part of a file, or of one language of a parallel table.

Read next: lines.py; corpora.py, whose tables can also serve as plain text.
"""

import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from weft.data.corpora import FOLDER, checked
from weft.data.files import file_bytes
from weft.data.lines import folding, line_findings, prose_lines, raw_lines, read_lines
from weft.data.report import COMMON, Finding, FindingList, Report, placed
from weft.data.several import called
from weft.data.tables import RECORDS, TableFile, kind_of
from weft.errors import DataError


class PlainText:
    r"""Lines without their ends, very long ones as several; each iteration reads the file again.

    Args:
        path: a text file, also .gz, .xz, .zst; or several, one after the other.
        begin, end: the part to read, as fractions of its characters; may cut a line.
        column: column of a table with a header; None for a text file.

    Raises:
        DataError: at once if the file is missing or empty; while reading if it is damaged.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "lines.txt").write_text("one\ntwo\n")
        ...     list(PlainText(Path(folder, "lines.txt")))
        ['one', 'two']
    """

    def __init__(
        self,
        path: str | Path | Sequence[Path],
        *,
        begin: float = 0.0,
        end: float = 1.0,
        column: int | None = None,
    ) -> None:
        self.paths = [Path(path)] if isinstance(path, str | Path) else [*path]
        self.path = self.paths[0]
        self.begin, self.end = begin, end
        self.column = column
        for one in self.paths:
            next(file_bytes(one), b"")
            check_prose(one)

    @property
    def name(self) -> str:
        """A name for messages and signatures."""
        part = "" if (self.begin, self.end) == (0, 1) else f"[{self.begin:g}:{self.end:g}]"
        return f"{called([str(path) for path in self.paths])}{part}"

    def __iter__(self) -> Iterator[str]:
        if self.column is not None:
            rows = read_lines(self.path)
            next(rows)
            cells = (row.split("\t")[self.column] for row in rows)
            yield from (cell for cell in cells if cell)
        elif (self.begin, self.end) == (0, 1):
            yield from self._lines()
        else:
            yield from self._part(self._lines())

    def _lines(self) -> Iterator[str]:
        return chain.from_iterable(map(prose_lines, self.paths))

    def _part(self, lines: Iterable[str]) -> list[str]:
        text = "".join(f"{line}\n" for line in lines)
        part = text[int(self.begin * len(text)) : int(self.end * len(text))]
        return part.removesuffix("\n").split("\n")

    @property
    def notes(self) -> list[str]:
        """How files are read, where a user may have expected something else."""
        return [note for path in self.paths for note in folding(path)]

    def whole(self) -> str:
        """The text as it is in the file, with its last line end if it has one."""
        own = iter(self)
        if self.column is None:
            own = iter(self._part(chain.from_iterable(map(read_lines, self.paths))))
        text = "\n".join(own)
        if self.column is None and self.end == 1:
            (last,) = deque(file_bytes(self.paths[-1]), 1)
            text += "\n" * last.endswith(b"\n")
        return text


def side(name: str, language: str, split: str) -> PlainText:
    """One language of a corpus included in Weft, without empty cells.

    Raises:
        ConfigError: unknown corpus, language or split.

    Example:
        >>> next(iter(side("libreoffice-help", "es", "test")))
        'Creación de una biblioteca nueva'
    """
    known = checked(name, [language], split)
    return PlainText(FOLDER / name / f"{split}.tsv.xz", column=1 + known.index(language))


def check_prose(path: Path) -> None:
    """Refuse records as JSON, whose braces and names would be read as text."""
    if kind_of(path) in RECORDS:
        names = TableFile(path).names()
        name = "text" if "text" in names else names[0]
        raise DataError(
            f"expected lines of text, got records with {', '.join(names)[:100]}; write their texts to a "
            f"file: jq -r .{name} {shlex.quote(str(path))} > {shlex.quote(path.name.partition('.')[0])}.txt",
            path=path,
        )


def check_plain_texts(paths: Sequence[Path]) -> Report:
    """Check text files for anything that would stop or spoil the training of a language model."""
    found = FindingList()
    lines: dict[str, int] = {}
    for path in paths:
        file = str(path)
        number = words = 0
        try:
            check_prose(path)
        except DataError as error:
            found.add(placed(file, error))
        for line in raw_lines(path, prose=True):
            if isinstance(line, Finding):
                found.add(line)
                break
            number += 1
            words += bool(line.decode("utf-8", errors="replace").strip())
            for finding in line_findings(line, file, number):
                found.add(finding)
        else:
            if not words:
                found.add(placed(file, no_words(path)))
        lines[file] = number
    return Report(found.kept, found.counts, lines, COMMON)


def no_words(path: str | Path) -> DataError:
    """The error for a text that is only white space."""
    return DataError("expected text, got only white space", path=path)
