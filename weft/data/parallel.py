"""Parallel text: the same lines in two languages, in two files or in two columns of one.

`ParallelText("data/train", "en", "de")` reads data/train.en and data/train.de (also .gz, .xz, .zst).
`ParallelText("data/train.tsv", "en", "de")` reads two columns of a table, also .csv or .xlsx: those named
by its header, or the only two if it has no header. `ParallelText("english.txt,german.txt", "en", "de")` reads
two files with any names. `ParallelText("memory.tmx", "en", "de")` reads a translation memory, also .po and
.xliff. A list of such names, also of folders, is one text.
Read next: tables.py; corpora.py, the corpus included in Weft; store.py.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from weft.data.files import COMPRESSED, bare, file_bytes, unreadable
from weft.data.languages import CODE, SIDES, code_of
from weft.data.lines import read_lines
from weft.data.magic import not_text
from weft.data.pairs import ENDINGS, pairs
from weft.data.report import Finding
from weft.data.several import JoinedTexts, each_file, is_folder, is_held_out, rank, repeats
from weft.data.tables import TableFile, is_table
from weft.errors import ConfigError, DataError
from weft.store import files
from weft.store.files import status
from weft.wording import plural


class SentencePair(NamedTuple):
    """A line and its translation.

    Example:
        >>> SentencePair(1, "Open the file.", "Abra el archivo.").target
        'Abra el archivo.'
    """

    number: int
    """Line number in its file or files, from 1."""

    source: str
    target: str


class ParallelText:
    """Pairs of lines; each iteration reads the files again, and nothing is kept in memory.

    Args:
        path: the part of two file names before the language, a table (see tables.py), two file names with a
            comma, or a memory: .tmx, .po, .xliff or .xlf; or a list of these and of folders.
        source, target: languages, as file extensions or column names.
        complete: leave out pairs with an empty side.
        name: the text's name in messages; the path by default.
        hold_out: 20 leaves out one pair of every 20, chosen by a hash of its place; 0 leaves out none.
        held: read those pairs instead of the others.

    Raises:
        DataError: a file or column is missing, or a file exists in two forms.

    Example:
        >>> from weft.data import corpus
        >>> text = corpus("libreoffice-help", "en", "es", "test")
        >>> type(text).__name__, next(iter(text)).target
        ('ParallelText', 'Creación de una biblioteca nueva')
    """

    def __init__(
        self,
        path: str | Path | Sequence[str | Path],
        source: str,
        target: str,
        *,
        complete: bool = False,
        name: str | None = None,
        hold_out: int = 0,
        held: bool = False,
    ) -> None:
        self.source, self.target = source, target
        self.complete = complete
        self.hold_out, self.held = hold_out, held
        self.name = name or (str(path) if isinstance(path, str | Path) else ", ".join(map(str, path)))
        self._included = name is not None  # with Weft, whose users need not know how it is read
        self.table: TableFile | None = None
        self._joined: JoinedTexts | None = None
        folder = isinstance(path, str | Path) and is_folder(Path(path))
        if not isinstance(path, str | Path) or (folder and not Path(f"{path}.{source}").exists()):
            names = [str(path)] if isinstance(path, str | Path) else [*map(str, path)]
            self._joined = JoinedTexts([ParallelText(file, source, target) for file in each_file(names)])
            self.files = self._joined.files
            return
        two = both(path)
        self._memory = two is None and is_memory(path)
        if two is not None:
            self.files = list(two)
            for file in two:
                next(file_bytes(file))
        elif is_table(path):
            self.table = TableFile(path)
            self.files = [self.table.path]
            self._pair = pair_columns(self.table, source, target)
        elif self._memory:
            self.files = [Path(path)]
            next(self._units())
        else:
            self.files = [find_side(path, source), find_side(path, target)]

    def __iter__(self) -> Iterator[SentencePair]:
        pairs: Iterator[SentencePair]
        if self._joined is not None:
            pairs = iter(self._joined)
        else:
            pairs = self._rows() if self.table else self._units() if self._memory else self._lines()
        if self.hold_out:
            pairs = (pair for n, pair in enumerate(pairs) if is_held_out(n, self.hold_out) is self.held)
        if self.complete:
            return (pair for pair in pairs if pair.source.strip() and pair.target.strip())
        return pairs

    def place(self, number: int) -> str:
        """The place of a pair, as file:line."""
        return f"{self.files[0]}:{number}" if self._joined is None else self._joined.place(number)

    @property
    def notes(self) -> list[str]:
        """How a table is read, where a user may have expected something else."""
        if self._joined is not None:
            return self._joined.notes
        if self.table is None or self._included:
            return []
        return [*self.table.notes, *([] if self._pair.header else headless(self.table))]

    def repeats(self) -> list[str]:
        """How many pairs of each file are in the files before it, too."""
        texts = [] if self._joined is None else self._joined.texts
        return repeats((text.name, (pair[1:] for pair in text)) for text in texts)

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
        assert self.table is not None
        left, right, header = self._pair
        rows = self.table.rows()
        if header:
            next(rows)
        for row in rows:
            if isinstance(row, Finding):
                form = f" ({self.source} TAB {self.target})" if len(self.table.first) == 2 else ""
                what = row.text.replace("2 columns", f"2 columns{form}").replace(
                    "the line", "the line (weft data check lists all)"
                )
                raise row._replace(text=what if row.kind == "columns" else row.text).error()
            yield SentencePair(row.number, one_line(row.cells[left]), one_line(row.cells[right]))

    def _units(self) -> Iterator[SentencePair]:
        (file,) = self.files
        try:
            sides = [code_of(side) or side for side in (self.source, self.target)]
            for found in pairs(file_bytes(file), str(bare(file)), *sides):
                yield SentencePair(*found)
        except DataError as error:
            raise DataError(error.why, path=file, line=error.line) from error


class PairColumns(NamedTuple):
    """The columns of sentence pairs in a table."""

    source: int
    target: int
    header: bool  # whether the first row names them


def pair_columns(table: TableFile, source: str, target: str) -> PairColumns:
    """The columns with these names, languages or numbers, or the only two of a table without names."""
    left, right = _side(table, source), _side(table, target)
    if left is not None and right is not None:
        return PairColumns(left, right, True)
    names = table.names()
    found = left is not None or right is not None
    if len(names) == 2 and not found and not all(map(names_side, names)):
        return PairColumns(0, 1, False)
    if not found and all(name.isdecimal() and 0 < int(name) <= len(names) for name in (source, target)):
        left, right = int(source) - 1, int(target) - 1  # a table without names
        return PairColumns(left, right, names_side(names[left]) and names_side(names[right]))
    missing = source if left is None else target
    raise _without(
        table,
        missing,
        "name the columns as the first line does (--source, --target; in a recipe data.source, data.target), "
        + "or by number, such as 1 and 2, " * (not any(map(names_side, names)))
        + f"or write a line of names above it, such as {source} and {target}, if it has none",
    )


def headless(table: TableFile) -> list[str]:
    """A note that the first row of a table is read as a pair, unless it is plainly one."""
    names = table.names()
    if table.kind == ".tsv" and not all(name.isalpha() for name in names):
        return []
    what = f"no header, so the first row ({', '.join(names)[:60]}) is a pair"
    return [f"{table.path}: {what}; if it names columns, name them with --source and --target"]


def column_texts(path: str | Path, name: str) -> Iterator[tuple[int, str | DataError]]:
    """The number and the text of each row of a table, in the column of this name; an error for a bad row.

    In a table without a header it is the first of one or two columns.
    """
    table = TableFile(path)
    column = _side(table, name)
    if column is None and (len(table.first) > 2 or all(map(names_side, table.names()))):
        raise _without(table, name, "call the column of the texts so in its first line, or give a text file")
    rows = table.rows(every=True)
    if column is not None:
        next(rows)
    for row in rows:
        if isinstance(row, Finding):
            yield row.line, row.error()
        else:
            yield row.number, one_line(row.cells[column or 0])


def _side(table: TableFile, name: str) -> int | None:
    """The column of this name, or of the same language: English is en."""
    found, code = table.find(name), code_of(name)
    if found is not None or code is None:
        return found
    same = [n for n, one in enumerate(table.names()) if code_of(one) == code]
    return same[0] if len(same) == 1 else None


def names_side(cell: str) -> bool:
    """Whether a cell of a header may name a language or a side.

    Example:
        >>> [names_side(cell) for cell in ("en", "pt-BR", "German", "source", "id", "Comment")]
        [True, True, True, True, False, False]
    """
    lower = cell.strip().lower()
    return bool(CODE.fullmatch(cell) and cell != "id") or lower in SIDES or code_of(lower) is not None


def one_line(cell: str) -> str:
    """A cell without line ends, which become spaces: a pair is a line of text on each side."""
    return cell if "\n" not in cell and "\r" not in cell else " ".join(cell.splitlines())


def _without(table: TableFile, name: str, advice: str) -> DataError:
    shown = ", ".join(cell[:20] for cell in table.names()[:10])
    told = f"expected a column {name!r}, got {shown}; {advice}"
    return DataError(told, path=table.path, line=table.number)


def complete(sources: Sequence[str], targets: Sequence[str]) -> list[int]:
    """The numbers of the pairs with text on both sides; training and scoring skip the others."""
    sides = zip(sources, targets, strict=True)
    return [number for number, (source, target) in enumerate(sides) if source.strip() and target.strip()]


def is_memory(path: str | Path) -> bool:
    """Whether a path names a translation memory, a catalogue or XLIFF."""
    return bare(Path(path)).suffix.lower() in ENDINGS


def both(path: str | Path) -> tuple[Path, Path] | None:
    """The two files named by a path with a comma; None if it names one file or a prefix."""
    first, comma, second = str(path).partition(",")
    if not comma or Path(path).exists():
        return None
    files = Path(first), Path(second)
    return files if any(file.is_file() for file in files) else None


def find_side(prefix: str | Path, language: str) -> Path:
    """The file of one language: prefix.language, plain or compressed."""
    forms = [Path(f"{prefix}.{language}{end}") for end in ("", *COMPRESSED)]
    try:
        found = [form for form in forms if status(form) is not None]
    except OSError as error:
        raise unreadable(forms[0], error) from error
    if len(found) > 1:
        raise DataError(f"found both {found[0]} and {found[1]}; remove or rename one of them")
    if not found:
        if Path(prefix).is_file():
            other = not_text(next(file_bytes(prefix)), str(prefix))
            advice = "name the part before the language, or a table (.csv, .tsv, .xlsx)"
            if "\t" in next(read_lines(prefix), ""):
                advice += "; if it is one, rename it .tsv"
            raise DataError(other or f"one file of a pair was given; {advice}", path=prefix)
        raise DataError(
            f"no such file, with or without {', '.join(COMPRESSED)}; "
            f"give the part of the name before .{language}, or a table (.csv, .tsv, .xlsx)",
            path=forms[0],
        )
    return found[0]


_SPLIT_SEED = 1
_ENDING = re.compile(r"[\w-]+")


def hold_out(path: Path, source: str, target: str, count: int) -> tuple[Path, Path]:
    """Write PATH.rest.* and PATH.held.*, the latter with `count` random pairs; returns their names."""
    text = ParallelText(path, source, target)
    total = sum(1 for _ in text)
    if count < 1 or total < 10 * count:
        raise ConfigError(f"{path}: cannot hold out {count:,} of {total:,} pairs; hold out at most a tenth")
    stem = path.with_suffix("") if is_table(path) or is_memory(path) else path
    if (two := both(path)) is not None:
        stem = two[0].with_name(f"{source}-{target}")
    table = not (_ENDING.fullmatch(source) and _ENDING.fullmatch(target))
    rest, held = (stem.with_name(f"{stem.name}.{part}{'.tsv' * table}") for part in ("rest", "held"))
    places = {
        (part, language): part if table else Path(f"{part}.{language}")
        for part in (rest, held)
        for language in (source, target)
    }
    for file in places.values():
        if file.exists():
            raise ConfigError(
                f"{file}: already exists; remove it, or train on the split: --train {rest} --valid {held}"
            )
    chosen = set(sorted(range(total), key=lambda number: rank(number, _SPLIT_SEED))[:count])
    try:
        with ExitStack() as stack:
            opened = {
                file: stack.enter_context(files.replacing(file)) for file in dict.fromkeys(places.values())
            }
            if table:
                for opened_file in opened.values():
                    opened_file.write(_tsv_row(source, target))
            for place, pair in enumerate(text):
                part = held if place in chosen else rest
                if table:
                    opened[part].write(_tsv_row(pair.source, pair.target))
                else:
                    opened[places[part, source]].write(f"{pair.source}\n".encode())
                    opened[places[part, target]].write(f"{pair.target}\n".encode())
    except OSError as error:
        raise DataError(f"cannot be split ({error.strerror})", path=path) from error
    return rest, held


def _tsv_row(*cells: str) -> bytes:
    """A row of a .tsv, with quotes where a cell needs them."""
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
