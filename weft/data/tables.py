"""Read tables row by row, as text: .csv, .tsv, workbooks (.xlsx, .xls, .ods), .jsonl, .json and .parquet.

The csv module, python-calamine and pyarrow read; pandas would not say in which line a row begins, and would
stop at a wrong one. This file chooses the delimiter, the quoting and the sheet, and says what it chose.
Read next: quoting.py; parallel.py and labelled.py, which find their columns.
"""

import csv
import datetime
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from weft.data.dialect import columns_named, mark_of
from weft.data.files import FREE_BYTES, MOST_TIMES, bare, file_bytes
from weft.data.languages import CODE
from weft.data.lines import LONGEST, numbered_lines, raw_lines, text_bytes, wrong_bytes
from weft.data.magic import kind_of_bytes, kind_of_file
from weft.data.parquet import parquet_rows
from weft.data.quoting import doubled, drawn, escaped, quoting
from weft.data.report import Finding
from weft.errors import ConfigError, DataError
from weft.wording import plural

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
RECORDS = (".jsonl", ".ndjson", ".json")
HALF = (
    "expected whole characters, got half a surrogate pair, such as \\ud83d; complete it, or remove the record"
)
NAMED = (*RECORDS, ".parquet")  # tables whose columns always have names

ENDINGS = (".csv", ".tsv", *NAMED, *WORKBOOKS)
"""Endings of tables; those of text files may be compressed too."""

NULL = "\\N"  # a cell without a value, as MySQL and PostgreSQL write it

YEAR = re.compile(r"(19|20)\d\d")  # a number that may name a column

HEAD = 20  # rows in which the header is looked for

KEYS = 1_000  # records whose keys are the columns

MOST_CELLS = 2**28  # cells of a sheet at most, without text too

SAMPLE = 100, 2**16
"""Lines, and about the characters, that the delimiter of a .csv is chosen from."""

csv.field_size_limit(LONGEST)  # the library's own limit is 131,072 characters


class Row(NamedTuple):
    """A row of a table."""

    number: int
    """The first line of the row in its file, or the number of the row in its sheet; from 1."""

    cells: list[str]


class TableFile:
    r"""A table; each iteration reads the file again.

    Every row has as many cells as the first. Rows without any text are left out at the end, and titles above
    the header (rows of one cell), unless the table is a .tsv.

    Args:
        path: of the file; `book.xlsx#SHEET` names one of several sheets.
        encoding: of a text file without a byte order mark.

    Attributes:
        first: the cells of the first row, which may be a header.
        number: of the first row.
        mark: the delimiter; a comma for workbooks and records.
        quoted: whether quotes enclose cells, and are no part of the text.
        notes: what was chosen where a user may have expected something else.

    Raises:
        DataError: the file is missing, empty, damaged, or has no row.
        ConfigError: a library is not installed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "x.csv")
        ...     _ = path.write_text('id;en\n1;"5"" disk; new"\n')
        ...     [row.cells for row in TableFile(path)]
        [['id', 'en'], ['1', '5" disk; new']]
    """

    def __init__(self, path: str | Path, encoding: str = "utf-8") -> None:
        self.path, sheet = _book(Path(path))
        self.encoding = encoding
        self.kind = kind_of(self.path)
        self.notes: list[str] = []
        self.mark, self.quoted = ",", True
        self._begin = 0  # lines before the first row
        self._held: list[Row] | None = None
        self._escaped = False  # whether quotes inside cells are written \\"
        if self.kind in WORKBOOKS:
            self._held = self._workbook(sheet)
        elif self.kind == ".parquet":
            names, rows = parquet_rows(self.path)
            records = ((number, dict(zip(names, row, strict=True))) for number, row in rows)
            self._held = [row for row in _recorded(records) if isinstance(row, Row)] or [Row(1, names)]
        elif self.kind not in RECORDS:
            self._dialect()
        self.first: list[str] = []
        self._unnamed = False  # whether the first column has no name, as R writes the names of rows
        begin = list(islice(self._read(), HEAD))
        if not begin:
            raise DataError("expected a table, got no row", path=self.path)
        if titles := self._titles(begin):
            begin = begin[titles:]
        first, others = begin[0], begin[1:6]
        if isinstance(first, Finding):
            raise first.error()
        self.number = first.number
        more = [
            row.cells for row in others if isinstance(row, Row) and len(row.cells) == len(first.cells) + 1
        ]
        numbers = [cells[0] for cells in more]
        self._unnamed = len(numbers) > 1 and numbers == [str(n + 1) for n in range(len(others))]
        self.first = [""] * self._unnamed + first.cells

    def _titles(self, begin: Sequence["Row | Finding"]) -> int:
        """The number of rows above the header, which are left out; each has one cell at most."""
        rows = [row for row in begin if isinstance(row, Row)]
        filled = [[cell for cell in row.cells if cell.strip()] for row in rows]
        widest = max((len(row.cells) for row in rows), default=0)
        few = [
            len(cells) < 2 or (len(cells) == 2 and 2 * len(row.cells) < widest)
            for row, cells in zip(rows, filled, strict=True)
        ]
        place = few.index(False) if False in few else 0
        if not 0 < place < len(rows) - 1 or self.kind in (".tsv", *NAMED) or len(rows) < len(begin):
            return 0
        index = any(len(row.cells) == 2 and not row.cells[0].strip() and row.cells[1] for row in rows[:place])
        numbers = [cell for cell in filled[place] if is_number(cell) and not YEAR.fullmatch(cell)]
        if index or numbers:
            return 0  # such as pandas' name of one column, and then the numbers of rows
        self._begin = rows[place].number - 1
        unit = "rows" if self._held else "lines"
        what = f"left out {unit} 1 to {self._begin}" if self._begin > 1 else "left out line 1"
        self.notes.append(f"{self.path}: {what}, above the header")
        return place

    def __iter__(self) -> Iterator[Row]:
        """All rows."""
        for row in self.rows():
            if isinstance(row, Finding):
                raise row.error()
            yield row

    def rows(self, *, every: bool = False) -> Iterator[Row | Finding]:
        """All rows, or a finding for each that is damaged; reading continues after it.

        Args:
            every: also those without text at the end, except in a workbook.
        """
        blank: list[Row] = []
        width = len(self.first)
        for row in self._read():
            if isinstance(row, Row) and len(row.cells) != width:
                row = self._fitted(row)
            if isinstance(row, Row) and NULL in row.cells:
                row.cells[:] = ["" if cell == NULL else cell for cell in row.cells]
            if isinstance(row, Row) and not row.cells[0].strip() and not any(map(str.strip, row.cells)):
                blank.append(row)
                continue
            if blank:
                yield from blank
                blank.clear()
            yield row
        yield from blank if every and self.kind not in WORKBOOKS else ()

    def _fitted(self, row: Row) -> Row | Finding:
        """The row with as many cells as the first: only cells without text may be missing or too many."""
        number, cells = row
        width = len(self.first)
        if self._unnamed and number == self.number:
            return Row(number, self.first)
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        if 1 < len(cells) < width and not any(map(str.strip, self.first[len(cells) :])):
            cells += [""] * (width - len(cells))
        if len(cells) == width:
            return row
        what = f"expected {plural(width, 'column')}, got {len(cells)}; correct or remove the line"
        return Finding(str(self.path), number, "columns", what)

    def names(self) -> list[str]:
        """The cells of the first row as names of columns, without line ends or signs of no width."""
        return [" ".join(re.sub("[\u200b\u2060\ufeff]", "", cell).split()) for cell in self.first]

    def find(self, name: str) -> int | None:
        """The column of this name, in any letter case if no other has it exactly; None if there is none.

        Raises:
            DataError: several columns have this name.
        """
        return columns_named(self.path, self.names(), [name], self.number)[0]

    def _read(self) -> Iterator[Row | Finding]:
        if self._held is not None:
            yield from (Row(row.number, list(row.cells)) for row in self._held if row.number > self._begin)
        elif self.kind in RECORDS:
            yield from self._records()
        elif self.quoted:
            yield from self._cells()
        else:
            yield from self._lines()

    def _dialect(self) -> None:
        """Choose the delimiter, and whether quotes enclose cells."""
        sample: list[str] = []
        for line in raw_lines(self.path, self.encoding):
            if len(sample) == SAMPLE[0] or sum(map(len, sample)) > SAMPLE[1]:
                break
            sample += [] if isinstance(line, Finding) else [line.decode("utf-8", "replace")]
        head = sample[0] if sample else ""
        if (kind := kind_of_bytes(head.encode())) is not None and kind.ending == ".html":
            raise DataError("expected a table, got a web page; fetch the file itself", path=self.path)
        if self.kind in (".csv", ".tsv") and (why := drawn(sample, self.path)):
            raise DataError(why, path=self.path)
        if head[:4].lower() == "sep=" and len(head) == 5:  # for Excel, which does not show this line
            self._begin, self.mark = 1, head[4]
        else:
            self.mark = "\t" if self.kind == ".tsv" else mark_of(sample)
        if self.kind == ".tsv":
            self.quoted, self._escaped, note = quoting(self.path, self.encoding, self.mark)
            self.notes += [f"{self.path}: {note}"] if note else []
        else:
            self._escaped = escaped(sample, self.mark)

    def _lines(self) -> Iterator[Row | Finding]:
        for line in numbered_lines(self.path, self.encoding):
            if isinstance(line, Finding):
                yield line
            elif line[0] > self._begin:
                cells = line[1].split(self.mark)
                if len(cells) > 1 or cells[0].strip() or len(self.first) == 1:  # a blank line is no row
                    yield Row(line[0], cells)

    def _cells(self) -> Iterator[Row | Finding]:
        """Rows with quoted cells; a row of several lines is numbered by its first line."""
        wrong: list[Finding] = []

        def usable() -> Iterator[str]:
            for number, line in enumerate(raw_lines(self.path, self.encoding), 1):
                if isinstance(line, Finding):
                    wrong.append(line)
                    continue
                if why := wrong_bytes(line, str(self.path)):
                    wrong.append(Finding(str(self.path), number, "bytes", why))
                text = "" if number <= self._begin else line.decode("utf-8", "replace")
                yield (doubled(text) if self._escaped else text) + "\n"

        reader = csv.reader(usable(), strict=True, delimiter=self.mark)
        while True:
            begun = reader.line_num + 1
            cells: list[str] | None = []
            mistaken = []
            try:
                cells = next(reader, None)
            except csv.Error as error:
                mistaken = [Finding(str(self.path), begun, "columns", _fault(error))]
            yield from wrong or mistaken
            if cells is None:
                return
            if cells and not wrong:
                yield Row(begun, cells)
            wrong.clear()

    def _records(self) -> Iterator[Row | Finding]:
        """The records of a .jsonl or .json; their keys are the first row."""
        if self.kind == ".json":
            text = b"".join(text_bytes(self.path, self.encoding)).decode("utf-8", "replace")
            try:
                listed = _listed(text)
            except DataError as error:
                raise error.at(self.path, error.line) from None
            if listed is None:
                what = (
                    'expected records such as [{"text": "..."}], as pandas writes them with orient="records"'
                )
                raise DataError(what, path=self.path)
            if has_half(text, listed):
                number = next(n for n, record in enumerate(listed, 1) if has_half(text, record))
                raise DataError(f"record {number}: {HALF}", path=self.path)
            yield from _recorded(enumerate(listed, 1))
            return
        yield from _recorded(self._json_lines())

    def _json_lines(self) -> Iterator["tuple[int, dict[str, Any]] | Finding"]:
        for line in numbered_lines(self.path):
            if isinstance(line, Finding):
                yield line
            elif (record := _record(line[1])) is None:
                what = 'expected a record such as {"text": "..."}; correct or remove the line'
                yield Finding(str(self.path), line[0], "columns", what)
            elif has_half(line[1], record):
                yield Finding(str(self.path), line[0], "columns", HALF)
            else:
                yield line[0], record

    def _workbook(self, sheet: str) -> list[Row]:
        try:
            from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum
        except ImportError:
            raise ConfigError(
                f"{self.path}: needs python-calamine (pip install 'weft-seq[tables]'); or save it as .csv"
            ) from None
        next(file_bytes(self.path), b"")
        self._check_size()
        try:
            with CalamineWorkbook.from_path(str(self.path)) as book:
                visible = [
                    one.name for one in book.sheets_metadata if one.visible == SheetVisibleEnum.Visible
                ]
                if sheet and sheet not in book.sheet_names:
                    shown = ", ".join(book.sheet_names)[:200]
                    raise DataError(
                        f"expected a sheet {sheet!r}, got {shown}; name one of them", path=self.path
                    )
                read = {
                    name: _sheet(book.get_sheet_by_name(name)) for name in ([sheet] if sheet else visible)
                }
        except CalamineError as error:
            kind = kind_of_file(self.path)
            if kind is None or kind.ending == ".html":  # as many programs write for Excel
                what = (
                    "no workbook, although its name says so; open it and save it as .xlsx, or rename it .csv "
                )
                raise DataError(what + "or .tsv if it is text", path=self.path) from error
            why = str(error).rstrip(".")[:100]
            raise DataError(f"cannot be read as a workbook ({why}); save it again", path=self.path) from error
        filled = {name: rows for name, rows in read.items() if rows}
        if not filled:
            raise DataError(
                "expected a sheet with a table, got none that is visible and filled", path=self.path
            )
        name = next((name for name, rows in filled.items() if _has_table(rows)), next(iter(filled)))
        if len(filled) > 1:
            others = [other for other in filled if other != name]
            self.notes.append(
                f"{self.path}: sheet {name!r} is read; for another ({', '.join(others)[:100]}) write "
                f"{self.path.name}#{others[0]}"
            )
        return filled[name]

    def _check_size(self) -> None:
        """Check that a workbook, a zip archive, does not unpack to more than any table does.

        Its reader allocates a sheet from the first cell to the last, and ends the process if it cannot.
        """
        try:
            with zipfile.ZipFile(self.path) as archive:
                size = sum(one.file_size for one in archive.infolist())
                if size > max(FREE_BYTES * 16, MOST_TIMES * self.path.stat().st_size):
                    why = f"unpacks to {size:,} bytes, which no table does; save it as .csv"
                    raise DataError(why, path=self.path)
                sheets = [one for one in archive.namelist() if one.startswith("xl/worksheets/")]
                corners = [_corner(archive.open(one)) for one in sheets]
        except DataError:
            raise
        except (OSError, ValueError, NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile):
            return  # an .xls, or damaged, which its reader says
        for column, row in corners:
            if _width(column) * row > MOST_CELLS:
                shown = f"{column.decode()}{row}"
                raise DataError(f"has cells up to {shown}; remove those far from the table", path=self.path)


def kind_of(path: Path) -> str:
    """The ending of a table, such as .csv of a.CSV.gz; "" if the file is no table."""
    name = bare(_book(path)[0]).name.lower()
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def is_table(path: str | Path) -> bool:
    """Whether the name of a file is that of a table."""
    return kind_of(Path(path)) != ""


def _book(path: Path) -> tuple[Path, str]:
    """The workbook and the sheet that a path names; no sheet if the path names none."""
    name, mark, sheet = path.name.rpartition("#")
    if not mark or not name.lower().endswith(WORKBOOKS):
        return path, ""
    return path.with_name(name), sheet


def _sheet(sheet: Any) -> list[Row]:
    """The rows of a sheet that have text, from its first filled column on."""
    if sheet.start is None:
        return []
    rows = enumerate(sheet.to_python(skip_empty_area=True), sheet.start[0] + 1)
    return [Row(number, [_text(cell) for cell in cells]) for number, cells in rows]


def _has_table(rows: Sequence[Row]) -> bool:
    """Whether a sheet has a table, and not the remarks of a cover."""
    return sum(sum(map(bool, row.cells)) > 1 for row in rows) > 2


def _corner(sheet: IO[bytes]) -> tuple[bytes, int]:
    """The last column and the last row of a sheet of an .xlsx; rows below 10,000 count as 10,000."""
    columns, last, rest = {b"A"}, 10_000, b""
    with sheet:
        while part := sheet.read(2**20):
            part = rest + part
            columns.update(re.findall(rb' r="([A-Z]{1,3})\d', part))
            last = max(last, *map(int, re.findall(rb' r="[A-Z]*(\d{5,7})"', part)), 0)
            rest = part[-20:]
    return max(columns, key=_width), last


def _width(column: bytes) -> int:
    return reduce(lambda number, letter: 26 * number + letter - 64, column, 0)


def _recorded(records: "Iterable[tuple[int, dict[str, Any]] | Finding]") -> Iterator[Row | Finding]:
    """Records as rows; the keys of the first ones are the first row."""
    records = iter(records)
    head = list(islice(records, KEYS))
    found = [(one[0], _flat(one[1])) for one in head if not isinstance(one, Finding)]
    names = list(dict.fromkeys(name for _, record in found for name in record))
    if found:
        yield Row(found[0][0], names)
    for one in chain(head, records):
        if isinstance(one, Finding):
            yield one
        else:
            record = _flat(one[1])
            yield Row(one[0], [_text(record.get(name)) for name in names])


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record with texts nested by language, as in {"translation": {"en": "a", "de": "b"}}, as columns."""
    if not any(isinstance(value, dict) for value in record.values()):
        return record
    flat: dict[str, Any] = {}
    for name, value in record.items():
        nested = isinstance(value, dict) and value and all(map(CODE.fullmatch, value))
        flat.update(value if nested else {name: value})
    return flat


def _listed(text: str) -> list[dict[str, Any]] | None:
    """The records of a .json: a list of them, or columns, as lists or as numbered cells, pandas' default."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        found = [_record(line) for line in text.split("\n") if line.strip()]  # a .jsonl in fact
        if not all(found) and text.lstrip().startswith(("[{", "[\n", "{")):
            what = f"expected whole JSON, got a fault in column {error.colno} ({error.msg}); write it again"
            raise DataError(what, line=error.lineno) from None
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and found and all(isinstance(column, list) for column in found.values()):
        if len({len(column) for column in found.values()}) == 1:
            found = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    elif isinstance(found, dict) and found and all(isinstance(column, dict) for column in found.values()):
        keys = list(next(iter(found.values())))
        if keys and all(list(column) == keys for column in found.values()) and all(map(str.isdecimal, keys)):
            found = [{name: column[key] for name, column in found.items()} for key in keys]
        elif not any(map(str.isdecimal, found)):  # a record for each name, as SpeechBrain writes them
            found = [{"id": name, **record} for name, record in found.items()]
    whole = isinstance(found, list) and found and all(isinstance(one, dict) and one for one in found)
    return found if whole else None


def _record(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


def has_half(text: str, found: Any) -> bool:
    """Whether JSON has half a surrogate pair, such as the first half of an emoji."""
    if "\\ud" not in text.lower():
        return False
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _text(cell: Any) -> str:
    """A cell as the program would write it into a .csv."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e17:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return (
            cell.isoformat(" ") if cell.time() != datetime.time() or cell.tzinfo else cell.date().isoformat()
        )
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else str(cell)


def is_number(cell: Any) -> bool:
    """Whether Python reads a cell as a number."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _fault(error: csv.Error) -> str:
    """What is wrong with a row, and what to do."""
    if "end of data" in str(error):
        return f"{error}: a quote opens a cell here and none closes it; close it, or correct the line"
    return f'{error}; write a quote inside a quoted cell twice (not \\"), or correct the line'


def header_of(path: str | Path) -> Sequence[str]:
    """The names in the first row of a table; none if it cannot be read."""
    try:
        return TableFile(path).names()
    except (DataError, ConfigError):
        return ()
