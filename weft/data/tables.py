"""Read tables row by row, as text: .csv, .tsv, the workbooks .xlsx, .xls and .ods, .jsonl and .parquet.

The csv module, python-calamine and pyarrow read. This file chooses the delimiter, the quoting and the sheet,
and says what it chose; every command and task reads tables with it.
Read next: quoting.py; parallel.py and labelled.py, which find their columns.
"""

import csv
import datetime
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from weft.data.files import COMPRESSED, FREE_BYTES, MOST_TIMES, file_bytes
from weft.data.lines import LONGEST, each_line, raw_lines, wrong_bytes
from weft.data.parquet import parquet_rows
from weft.data.quoting import mark_of, quoted
from weft.data.report import Finding, placed
from weft.errors import ConfigError, DataError
from weft.wording import plural

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", *WORKBOOKS)
"""Endings of tables; .csv, .tsv and .jsonl may be compressed too."""

MOST_CELLS = 2**28
"""Cells of a sheet at most, without text too."""

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

    Every row has as many cells as the first. Rows without any text are left out at the end.

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
        if self.kind in WORKBOOKS:
            self._held = self._workbook(sheet)
        elif self.kind == ".parquet":
            names, rows = parquet_rows(self.path)
            self._held = [
                Row(1, names),
                *(Row(number, [_text(cell) for cell in row]) for number, row in rows),
            ]
        elif self.kind != ".jsonl":
            self._dialect()
        self.first: list[str] = []
        self._unnamed = False  # whether the first column has no name, as R writes the names of rows
        begin = list(islice(self._read(), 6))
        if not begin:
            raise DataError("expected a table, got no row", path=self.path)
        first, others = begin[0], begin[1:]
        if isinstance(first, Finding):
            raise first.error()
        self.number = first.number
        more = [
            row.cells for row in others if isinstance(row, Row) and len(row.cells) == len(first.cells) + 1
        ]
        numbers = [cells[0] for cells in more]
        self._unnamed = len(numbers) > 1 and numbers == [str(n + 1) for n in range(len(others))]
        self.first = [""] * self._unnamed + first.cells

    def __iter__(self) -> Iterator[Row]:
        """All rows.

        Raises:
            DataError: a row is damaged.
        """
        for row in self.rows():
            if isinstance(row, Finding):
                raise row.error()
            yield row

    def rows(self) -> Iterator[Row | Finding]:
        """All rows, or a finding for each that is damaged; reading continues after it."""
        blank: list[Row] = []
        width = len(self.first)
        for row in self._read():
            if isinstance(row, Row) and len(row.cells) != width:
                row = self._fitted(row)
            if isinstance(row, Row) and not row.cells[0].strip() and not any(map(str.strip, row.cells)):
                blank.append(row)
                continue
            if blank:
                yield from blank
                blank.clear()
            yield row

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
        """The cells of the first row as names of columns, without line ends inside."""
        return [" ".join(cell.split()) for cell in self.first]

    def find(self, name: str) -> int | None:
        """The column of this name, in any letter case if no other has it exactly; None if there is none.

        Raises:
            DataError: several columns have this name.
        """
        names = self.names()
        found = [n for n, one in enumerate(names) if one == name]
        found = found or [n for n, one in enumerate(names) if one.casefold() == name.casefold()]
        if len(found) > 1:
            where = " and ".join(str(n + 1) for n in found)
            raise DataError(
                f"the columns {where} are both called {name!r}; rename one", path=self.path, line=self.number
            )
        return found[0] if found else None

    def _read(self) -> Iterator[Row | Finding]:
        if self._held is not None:
            yield from (Row(row.number, list(row.cells)) for row in self._held)
        elif self.kind == ".jsonl":
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
        if head[:4].lower() == "sep=" and len(head) == 5:  # for Excel, which does not show this line
            self._begin, self.mark = 1, head[4]
        else:
            self.mark = "\t" if self.kind == ".tsv" else mark_of(sample)
        if self.kind == ".tsv":
            self.quoted, note = quoted(self.path, self.encoding, self.mark)
            self.notes += [f"{self.path}: {note}"] if note else []

    def _lines(self) -> Iterator[Row | Finding]:
        lines: Iterator[Any] = raw_lines(self.path, self.encoding)
        if self.encoding == "utf-8":
            lines = each_line(self.path)  # faster
        try:
            for number, line in enumerate(lines, 1):
                if isinstance(line, DataError):
                    yield placed(str(self.path), line, "bytes")
                elif isinstance(line, Finding):
                    yield line
                elif number > self._begin:
                    text = line if isinstance(line, str) else line.decode("utf-8", "replace")
                    cells = text.split(self.mark)
                    if len(cells) > 1 or text.strip() or len(self.first) == 1:  # a blank line is no row
                        yield Row(number, cells)
        except DataError as error:
            yield placed(str(self.path), error)

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
                yield "\n" if number <= self._begin else line.decode("utf-8", "replace") + "\n"

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
        """The records of a .jsonl; their keys are the first row."""
        names: list[str] = []
        try:
            for number, line in enumerate(each_line(self.path), 1):
                if isinstance(line, DataError):
                    yield placed(str(self.path), line, "bytes")
                    continue
                record = _record(line)
                if record is None:
                    what = 'expected a record such as {"text": "..."}; correct or remove the line'
                    yield Finding(str(self.path), number, "columns", what)
                    continue
                if not names:
                    names = list(record)
                    yield Row(number, names)
                yield Row(number, [_text(record.get(name)) for name in names])
        except DataError as error:
            yield placed(str(self.path), error)

    def _workbook(self, sheet: str) -> list[Row]:
        try:
            from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum
        except ImportError:
            raise ConfigError(
                f"{self.path}: needs python-calamine (pip install 'weft[tables]'); or save it as .csv (UTF-8)"
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
            why = str(error).rstrip(".")[:100]
            raise DataError(f"cannot be read as a workbook ({why}); save it again", path=self.path) from error
        filled = {name: rows for name, rows in read.items() if rows}
        if not filled:
            raise DataError(
                "expected a sheet with a table, got none that is visible and filled", path=self.path
            )
        name, rows = next(iter(filled.items()))
        if len(filled) > 1:
            others = ", ".join(list(filled)[1:])
            self.notes.append(
                f"{self.path}: sheet {name!r} is read; for another ({others[:100]}) write "
                f"{self.path.name}#{list(filled)[1]}"
            )
        return rows

    def _check_size(self) -> None:
        """Check that a workbook, a zip archive, does not unpack to more than any table does.

        Its reader allocates a sheet from the first cell to the last, and ends the process if it cannot.
        """
        try:
            with zipfile.ZipFile(self.path) as archive:
                size = sum(one.file_size for one in archive.infolist())
                sheets = [one for one in archive.namelist() if one.startswith("xl/worksheets/")]
                heads = [archive.open(one).read(4096) for one in sheets]
        except (OSError, ValueError, NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile):
            return  # an .xls, or damaged, which its reader says
        for head in heads:
            corner = re.search(rb'<dimension ref="[A-Z0-9]+:([A-Z]+)([0-9]+)"', head)
            width = reduce(lambda number, letter: 26 * number + letter - 64, corner[1] if corner else b"", 0)
            if corner and width * int(corner[2]) > MOST_CELLS:
                shown = (corner[1] + corner[2]).decode()
                raise DataError(f"has cells up to {shown}; remove those far from the table", path=self.path)
        if size > max(FREE_BYTES * 16, MOST_TIMES * self.path.stat().st_size):
            raise DataError(
                f"unpacks to {size:,} bytes, which no table does; save it as .csv", path=self.path
            )


def kind_of(path: Path) -> str:
    """The ending of a table, such as .csv for a.csv.gz; "" if the file is no table.

    Example:
        >>> kind_of(Path("a.CSV.gz")), kind_of(Path("book.xlsx#Sheet 2")), kind_of(Path("a.txt"))
        ('.csv', '.xlsx', '')
    """
    name = _book(path)[0].name.lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
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


def _record(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


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


def _fault(error: csv.Error) -> str:
    """What is wrong with a row, and what to do."""
    if "end of data" in str(error):
        return f"{error}: a quote opens a cell here and none closes it; close it, or correct the line"
    return f"{error}; quote the cell or correct the line"


def header_of(path: str | Path) -> Sequence[str]:
    """The names in the first row of a table; none if it cannot be read."""
    try:
        return TableFile(path).names()
    except (DataError, ConfigError):
        return ()
