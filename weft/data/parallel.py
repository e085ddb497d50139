"""Parallel text: the same lines in two languages, in two files or in two columns of one.

`ParallelText("data/train", "en", "de")` reads data/train.en and data/train.de (also .gz, .xz, .zst).
`ParallelText("data/train.tsv", "en", "de")` reads two columns of a TSV file: those named by its header, or
the only two if it has no header. `ParallelText("english.txt,german.txt", "en", "de")` reads two files with
any names. `ParallelText("memory.tmx", "en", "de")` reads a translation memory, and so .po and .xliff.
Read next: corpora.py, the corpus included in Weft; store.py.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from weft.data.files import COMPRESSED, file_bytes, unreadable
from weft.data.lines import read_lines
from weft.documents.pairs import ENDINGS, pairs
from weft.errors import DataError
from weft.store.files import status
from weft.wording import plural

_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,8})?")


class SentencePair(NamedTuple):
    """A line and its translation."""

    number: int
    """Line number in its file or files, from 1."""

    source: str
    target: str


class ParallelText:
    """Pairs of lines; each iteration reads the files again, and nothing is kept in memory.

    Args:
        path: the part of two file names before the language, a .tsv file, two file names with a comma, or a
            memory: .tmx, .po, .xliff or .xlf.
        source, target: languages, as file extensions or column names.
        complete: leave out pairs with an empty side.
        name: the text's name in messages; the path by default.

    Raises:
        DataError: a file or column is missing, or a file exists in two forms.
    """

    def __init__(
        self, path: str | Path, source: str, target: str, *, complete: bool = False, name: str | None = None
    ) -> None:
        self.source, self.target = source, target
        self.complete = complete
        self.name = name or str(path)
        two = both(path)
        self._table = two is None and is_table(path)
        self._memory = two is None and is_memory(path)
        self._header = 0
        self._columns = (0, 1)
        self._width = 2
        if two is not None:
            self.files = list(two)
            for file in two:
                next(file_bytes(file))
        elif self._table:
            self.files = [Path(path)]
            self._read_header()
        elif self._memory:
            self.files = [Path(path)]
            next(self._units())
        else:
            self.files = [find_side(path, source), find_side(path, target)]

    def __iter__(self) -> Iterator[SentencePair]:
        pairs = self._rows() if self._table else self._units() if self._memory else self._lines()
        if self.complete:
            return (pair for pair in pairs if pair.source.strip() and pair.target.strip())
        return pairs

    def place(self, number: int) -> str:
        """The place of a pair, as file:line."""
        return f"{self.files[0]}:{number}"

    def _lines(self) -> Iterator[SentencePair]:
        first, second = self.files
        sides = read_lines(first), read_lines(second)
        for number, (source, target) in enumerate(zip_longest(*sides), 1):
            if source is None or target is None:
                more = number + sum(1 for _ in sides[source is None])
                counts = (number - 1, more) if source is None else (more, number - 1)
                raise DataError(
                    f"{first} has {plural(counts[0], 'line')} and {second} has {counts[1]:,}; "
                    "each line of one must translate the same line of the other, so counts must be equal; "
                    f"weft data check {first} {second} finds the line where they stop matching"
                )
            yield SentencePair(number, source, target)

    def _rows(self) -> Iterator[SentencePair]:
        (file,) = self.files
        left, right = self._columns
        for number, line in enumerate(read_lines(file), 1):
            if number <= self._header:
                continue
            cells = line.split("\t")
            if len(cells) != self._width:
                form = f" ({self.source} TAB {self.target})" if self._width == 2 else ""
                raise DataError(
                    f"expected {plural(self._width, 'column')}{form}, got {len(cells)}; "
                    "correct or remove the line (weft data check lists all)",
                    path=file,
                    line=number,
                )
            yield SentencePair(number, cells[left], cells[right])

    def _units(self) -> Iterator[SentencePair]:
        (file,) = self.files
        bare = file.with_suffix("") if file.suffix in COMPRESSED else file
        try:
            for found in pairs(file_bytes(file), str(bare), self.source, self.target):
                yield SentencePair(*found)
        except DataError as error:
            raise DataError(error.why, path=file, line=error.line) from error

    def _read_header(self) -> None:
        """Find the columns by the names in the first line, or take the only two."""
        (file,) = self.files
        line = next(read_lines(file), None)
        if line is None:  # only a byte order mark
            raise DataError("the file is empty; give one with at least one line", path=file)
        cells = [cell.strip() for cell in line.split("\t")]
        wanted = [self.source, self.target]
        if set(wanted) <= set(cells):
            self._header, self._width = 1, len(cells)
            self._columns = (cells.index(self.source), cells.index(self.target))
        elif len(cells) != 2 or all(map(_LANGUAGE.fullmatch, cells)) or set(wanted) & set(cells):
            missing = next(name for name in wanted if name not in cells)
            shown = ", ".join(cell[:20] for cell in cells[:10])
            raise DataError(
                f"expected a column {missing!r}, got {shown}; "
                "name the columns in the first line, or give two columns (source TAB target) without names",
                path=file,
                line=1,
            )


def complete(sources: Sequence[str], targets: Sequence[str]) -> list[int]:
    """The numbers of the pairs with text on both sides; training and scoring skip the others.

    Example:
        >>> complete(["a", "b", ""], ["x", " ", "z"])
        [0]
    """
    sides = zip(sources, targets, strict=True)
    return [number for number, (source, target) in enumerate(sides) if source.strip() and target.strip()]


def is_table(path: str | Path) -> bool:
    """Whether a path names a TSV file."""
    name = Path(path).name
    return any(name.endswith(f".tsv{end}") for end in ("", *COMPRESSED))


def is_memory(path: str | Path) -> bool:
    """Whether a path names a translation memory, a catalogue or XLIFF."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix.lower() in ENDINGS


def both(path: str | Path) -> tuple[Path, Path] | None:
    """The two files named by a path with a comma; None if it names one file or a prefix.

    Example:
        >>> both("data/train.tsv") is None
        True
    """
    first, comma, second = str(path).partition(",")
    if not comma or Path(path).exists():
        return None
    files = Path(first), Path(second)
    return files if any(file.is_file() for file in files) else None


def find_side(prefix: str | Path, language: str) -> Path:
    """The file of one language: prefix.language, plain or compressed.

    Raises:
        DataError: there is no such file, or more than one.
    """
    forms = [Path(f"{prefix}.{language}{end}") for end in ("", *COMPRESSED)]
    try:
        found = [form for form in forms if status(form) is not None]
    except OSError as error:
        raise unreadable(forms[0], error) from error
    if len(found) > 1:
        raise DataError(f"found both {found[0]} and {found[1]}; remove or rename one of them")
    if not found:
        if Path(prefix).is_file():
            raise DataError("one file of a pair was given; name the part before the language", path=prefix)
        raise DataError(
            f"no such file, with or without {', '.join(COMPRESSED)}; "
            f"give the part of the name before .{language}, or a .tsv file",
            path=forms[0],
        )
    return found[0]
