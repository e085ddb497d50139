"""Choose how the cells of a text table are separated, and whether quotes enclose them.

The csv module reads either way; its Sniffer takes decimal commas for delimiters, and does not tell a table
of a spreadsheet, pandas or R, with quotes around cells, from text with tabs, whose quotes belong to the text.
Read next: tables.py.
"""

import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from weft.data.lines import raw_lines, text_bytes
from weft.errors import DataError

_RULE = re.compile(r"(?=[^|+]*[|+])(?=.*---)[-+|: ]+")  # between the header and the rows of a drawn table
ENOUGH = 100  # cells with quotes that no table would have, after which the rest is not examined

ENCLOSED = "quotes enclose its cells, as spreadsheets write them, and are no part of the text"
LITERAL = "its quotes do not enclose cells as a table's do, so they are part of the text"


def drawn(lines: Sequence[str], path: Path) -> str:
    """What to do with a table drawn for reading, as psql, MySQL and Markdown do; empty if it is not drawn."""
    if not any(_RULE.fullmatch(line.strip()) for line in lines[:3]):
        return ""
    steps = r"/^[-+|: ]*$/d; /^\([0-9]+ rows?\)$/d; s/^ *\|(.*)\| *$/\1/; s/ *\| */\t/g; s/^ +| +$//g"
    convert = f"sed -E '{steps}' {shlex.quote(str(path))} > {shlex.quote(str(path.with_suffix('.tsv')))}"
    what = "expected cells between delimiters, got a table with drawn lines (psql, MySQL, Markdown)"
    return f"{what}; convert it: {convert}"


def escaped(lines: Sequence[str], mark: str) -> bool:
    r"""Whether quotes inside the cells of a .csv are written \" and not twice, as MySQL and R write them."""
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
    """What quotes mean in a text table."""
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
    """
    raw = list[str]()  # the lines of a row
    reader = csv.reader(_noted(lines, raw), delimiter=mark, strict=True)
    needed = against = width = 0  # enclosed cells for a reason; quotes that no program writes
    others = Counter[bool]()  # cells enclosed for no other reason than commas, if they have one
    commas = False  # outside of enclosed cells
    always: set[int] | None = None  # columns with all cells enclosed
    while against <= needed + ENOUGH:
        raw.clear()
        try:
            cells = next(reader, None)
        except csv.Error:
            against += 1
            continue
        if cells is None:
            break
        text = "\n".join(raw)
        width = width or raw[0].count(mark) + 1
        even = all(line.count(mark) + 1 == width for line in raw)  # rows of their own, by chance
        inside = set(_enclosed_cells(cells, text)) if '"' in text else set()
        commas = commas or (not inside and "," in text)
        for place, cell in enumerate(cells if '"' in text else ()):
            if place not in inside:
                against += '"' in cell
                commas = commas or "," in cell
            elif "\n" in cell or mark in cell:
                needed, against = needed + (not even), against + even
            elif '"' in cell:
                needed += 1
            else:
                others["," in cell or ";" in cell] += 1
        if always is None or always:
            bare = {n for n, cell in enumerate(cells) if n not in inside and cell not in ("", "NA")}  # R: NA
            always = (set(range(width)) if always is None else always) - bare
    if against or needed:
        return needed > against
    return bool(others) and (bool(always) or (not others[False] and not commas))


def _noted(lines: Iterable[str], raw: list[str]) -> Iterator[str]:
    for line in lines:
        raw.append(line)
        yield f"{line}\n"


def _enclosed_cells(cells: Sequence[str], text: str) -> Iterator[int]:
    """The places of the cells that have quotes around them in the text of their row."""
    at = 0
    for place, cell in enumerate(cells):
        written = '"{}"'.format(cell.replace('"', '""'))
        inside = text.startswith(written, at)
        at += len(written if inside else cell) + 1
        if inside:
            yield place
