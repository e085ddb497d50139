"""Choose how the cells of a text table are separated, and whether quotes enclose them.

The csv module reads either way; its Sniffer sees only a sample, and takes any character for a delimiter. A
.tsv may be a table that a spreadsheet, pandas or R wrote, with quotes around cells; or plain text with tabs,
whose quotes belong to the text. Read next: tables.py.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from weft.data.lines import raw_lines, text_bytes
from weft.errors import DataError

MARKS = ",;\t|"
SPAN = 1_000
"""Maximum lines of a cell."""

ENOUGH = 100
"""Cells with quotes that no table would have, after which the rest is not examined."""

ENCLOSED = "quotes enclose its cells, as spreadsheets write them, and are no part of the text"
LITERAL = "its quotes do not enclose cells as a table's do, so they are part of the text"


def mark_of(lines: Sequence[str]) -> str:
    """The delimiter that splits most lines into as many cells as the first; a comma if none splits them.

    Example:
        >>> mark_of(["day;a,b;c"]), mark_of(['"a;b",c']), mark_of(["one cell"])
        (';', ',', ',')
        >>> mark_of(["label,text", "x,one; two; three", "y,four; five; six"])
        ','
    """
    return max(MARKS, key=lambda mark: _fit(lines, mark))


def _fit(lines: Sequence[str], mark: str) -> tuple[bool, bool, float, bool, int]:
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark) if row]
    except csv.Error:  # a cell exceeds the limit, so this is not the delimiter
        return False, False, 0.0, False, 0
    below = widths[next((n for n, width in enumerate(widths) if width > 1), 0) :]
    titles = len(below) < len(widths) and len(below) > 2 and below.count(below[0]) == len(below)
    widths = below if titles else widths
    width = widths[0] if widths else 0
    share = widths.count(width) / len(widths) if widths else 0.0
    return width > 1, not titles, share, width > 1 and mark != ",", width  # numbers and texts have commas too


def escaped(lines: Sequence[str], mark: str) -> bool:
    r"""Whether quotes inside the cells of a .csv are written \" and not twice, as MySQL and R write them.

    Example:
        >>> escaped([r'"a \"b\" c",1'], ","), escaped(['"a ""b"" c",1'], ","), escaped([r'"C:\",1'], ",")
        (True, False, False)
    """
    if not any('\\"' in line for line in lines):
        return False
    return not _fits(lines, mark) and _fits([doubled(line) for line in lines], mark)


def doubled(line: str) -> str:
    r"""A line with its quotes inside cells written twice instead of \"."""
    return line.replace('\\"', '""')


def _fits(lines: Sequence[str], mark: str) -> bool:
    """Whether the csv module can read some lines, of which the last may be incomplete."""
    try:
        for _ in csv.reader((f"{line}\n" for line in lines), strict=True, delimiter=mark):
            pass
    except csv.Error as error:
        return "end of data" in str(error)
    return True


class Quoting(NamedTuple):
    """What quotes mean in a text table."""

    quoted: bool  # whether they enclose cells
    escaped: bool = False  # whether those inside are written \\"
    note: str = ""  # a sentence about it, if there are any


def quoting(path: Path, encoding: str = "utf-8", mark: str = "\t") -> Quoting:
    """What quotes mean in a text table.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        about = path.stat()
    except OSError:
        return Quoting(False)  # the reader says it
    return _quoting(path, encoding, mark, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)
def _quoting(path: Path, encoding: str, mark: str, size: int, changed: int) -> Quoting:
    """`size` and `changed` are part of the cache's key."""
    if not _begins_cells(path, encoding, mark):
        return Quoting(False)
    try:
        backslash = any(b'\\"' in part for part in text_bytes(path, encoding))
        for change in (str, doubled) if backslash else (str,):
            lines = (line for line in raw_lines(path, encoding) if isinstance(line, bytes))
            if enclosed((change(line.decode("utf-8", "replace")) for line in lines), mark):
                return Quoting(True, change is doubled, ENCLOSED)
    except DataError:
        return Quoting(False)  # the reader says it
    return Quoting(False, note=LITERAL)


def _begins_cells(path: Path, encoding: str, mark: str) -> bool:
    before = b"\n"
    for part in text_bytes(path, encoding):
        whole = before + part
        if b'\n"' in whole or f'{mark}"'.encode() in whole:
            return True
        before = whole[-1:]
    return False


def enclosed(lines: Iterable[str], mark: str = "\t") -> bool:
    r"""Whether quotes enclose the cells of these lines.

    A program that writes tables encloses a cell for a reason: always, or where the cell has a quote (which
    it doubles), a delimiter or a line end; Excel also where it has a comma. Then a cell that is not enclosed
    has no quote. In plain text, cells begin or end with a quote by chance.

    Example:
        >>> enclosed(['5" disk\t"x"\t1']), enclosed(['"5"" disk"\tx\t1']), enclosed(['"Hello," she said.\tx'])
        (False, True, False)
    """
    signs = _Signs(mark)
    for line in lines:
        signs.see(line)
        if signs.against > signs.doubled + ENOUGH:
            break
    return signs.enclosed()


class _Signs:
    """What speaks for quotes that enclose cells, and what against it."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.doubled = 0  # enclosed cells that need it
        self.against = 0  # cells with quotes that no program writes
        self.reasons = Counter[bool]()  # enclosed cells without quotes by whether they have a comma
        self.commas = False  # outside of enclosed cells
        self.always: set[int] | None = None  # columns with all cells enclosed
        self.width = 0
        self._open: list[str] = []  # the parts of a cell whose closing quote has not come
        self._lines = 0  # that it spans
        self._even = True  # whether each of them has as many cells as the first line

    def see(self, line: str) -> None:
        cells = line.split(self.mark)
        self.width = self.width or len(cells)
        if not self._open and '"' not in line:
            self.commas = self.commas or "," in line
            if line.strip() and any(cell not in ("", "NA") for cell in cells):
                self.always = set()
            return
        if self._open:
            self._lines += 1
            self._even = self._even and len(cells) == self.width
            if self._lines > SPAN:
                self.against, self._open = self.against + 1, []
        elsewhere = set()  # columns with cells that are not enclosed
        for place, cell in enumerate(cells):
            if self._open:
                self._close(("\n" if place == 0 else self.mark) + cell)
            elif cell.startswith('"'):
                self._begin(cell, len(cells))
            else:
                self.against += '"' in cell
                self.commas = self.commas or "," in cell
                if cell not in ("", "NA"):  # R writes NA without quotes
                    elsewhere.add(place)
        everywhere = set(range(self.width)) if self.always is None else self.always
        self.always = everywhere - elsewhere

    def _begin(self, cell: str, width: int) -> None:
        inside = cell[1:-1].replace('""', "")
        if cell.count('"') % 2:
            self._open, self._lines, self._even = [cell], 1, width == self.width
        elif not cell.endswith('"') or '"' in inside:
            self.against += 1
        elif '""' in cell[1:-1]:
            self.doubled += 1
        else:
            self.reasons["," in cell or ";" in cell] += 1

    def _close(self, part: str) -> None:
        self._open.append(part)
        if part.count('"') % 2 == 0:
            return
        whole, self._open = "".join(self._open), []
        fits = whole.endswith('"') and '"' not in whole[1:-1].replace('""', "")
        if fits and not self._even:
            self.doubled += 1
        else:
            self.against += 1

    def enclosed(self) -> bool:
        against = self.against + bool(self._open)
        if against or self.doubled:
            return self.doubled > against
        return bool(self.always) or (self.reasons[False] == 0 and self.reasons[True] > 0 and not self.commas)
