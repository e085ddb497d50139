"""Variants of tables: delimiters, decimal commas, currencies, and the order of day and month.

pandas has to be told the decimal separator, the thousands and the order; here they are found in the column.
The program of an exported model contains this file: ../export/programs/__init__.py.
Read next: series.py, which reads them; guess.py, which guesses columns.
"""

import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from weft.errors import DataError

_CURRENCY = (
    "$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20c1\ua838\ufdfc\ufe69\uff04"
    "\uffe0\uffe1\uffe5\uffe6"
)
_UNIT = rf"[A-Z]{{0,3}}[{_CURRENCY}]|EUR|USD|GBP|CHF|Fr\.|kr\.?|zł|Kč|Ft|lei|kn|%|‰"
_NUMBER = re.compile(
    rf"(\()?\s*([-+−]?)\s*({_UNIT})?\s*([-+−]?)([\d.,'’\s]*\d[.,]?)([eE][-+]?\d+)?\s*({_UNIT})?\s*(\))?(-)?"
)
_LONGEST = 100  # characters of a number with a unit
_PLAIN = re.compile(r"\s*+[-+]?\d*+\.?\d*+(?:[eE][-+]?\d+)?\s*")
_SPACES = r"'’ \u00a0\u2009\u202f"
_POINT = re.compile(
    rf"(?:[1-9]\d{{0,2}}(?:(?:,\d\d)*,\d{{3}}|(?:,\d{{3}})+|(?:[{_SPACES}]\d{{3}})+)|\d*)(?:\.\d*)?"
)
_COMMA = re.compile(rf"(?:[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|(?:[{_SPACES}]\d{{3}})+)|\d*)(?:,\d*)?")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_WEEKDAY = re.compile(r"[^\W\d_]{2,10}\.?,?\s+(?=\d+([./-])\d+\1\d)")
_BETWEEN = re.compile(r"\s*(/|-|–|—|to)\s*")
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})\.?(?:[ T,]+(\S.*))?$")
_MONTH = re.compile(r"(\d{1,2})[./](\d{4})$")

MARKS = ",;\t|"

MISSING = {
    "", "na", "n/a", "n.a.", "n/d", "k.a.", "nan", "nat", "null", "none", "-", "--", ".", "..", "?", ":",
    "<na>", "\\n", "#n/a", "#na", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!",
}  # fmt: skip
"""Cells without a value, as pandas, R, spreadsheets, SQL and statistical offices write them; lower-cased."""

Row = tuple[int, list[str]]  # line number and cells

Order = Literal["day", "month"]  # the first part of a date: 31.12.2024 or 12/31/2024


def columns_named(
    path: str | Path, header: Sequence[str], names: Sequence[str], line: int | None = None
) -> list[int | None]:
    """The columns of these names, in any letter case if no other has it exactly; None if there is none."""
    exact: dict[str, list[int]] = {}
    folded: dict[str, list[int]] = {}
    for n, one in enumerate(header):
        exact.setdefault(one, []).append(n)
        folded.setdefault(one.casefold(), []).append(n)
    places: list[int | None] = []
    for name in names:
        found = exact.get(name) or folded.get(name.casefold(), [])
        if len(found) > 1:
            where = " and ".join(str(n + 1) for n in found)
            raise DataError(f"the columns {where} are both called {name!r}; rename one", path=path, line=line)
        places.append(found[0] if found else None)
    return places


def mark_of(lines: Sequence[str]) -> str:
    """The delimiter that splits most lines into as many cells as the first; a comma if none splits them."""
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


class PlainNumbers(NamedTuple):
    """Rows with numbers in Python's format, and what was assumed of which column."""

    rows: Sequence[Row]
    notes: Sequence[tuple[int, str]] = ()


class _Number(NamedTuple):
    """A cell that a spreadsheet would read as a number."""

    sign: str
    body: str
    power: str
    unit: str
    point: bool  # whether it may have a decimal point
    comma: bool  # whether it may have a decimal comma

    def plain(self, decimal: str) -> str:
        body = re.sub(rf"[{_SPACES}{'.' if decimal == ',' else ','}]", "", self.body)
        return self.sign + body.replace(",", ".") + self.power


def plain_numbers(rows: Sequence[Row], mark: str) -> PlainNumbers:
    """The same rows with numbers in Python's format: 1.234,5 and $1,234 and (5) become 1234.5, 1234 and -5.

    Each column has one decimal separator and one unit, or stays as it is.
    """
    columns = [set(cells) for cells in zip(*(row for _, row in rows), strict=True)]
    changed: dict[int, dict[str, str]] = {}
    notes: list[tuple[int, str]] = []
    for n, cells in enumerate(columns):
        found = _numbers(cells, mark)
        decimal, proven = _decimal(found.values(), mark, columns)
        if decimal is None or len({one.unit for one in found.values()}) != 1:
            continue
        changed[n] = {cell: one.plain(decimal) for cell, one in found.items()}
        told = [
            cell for cell, one in found.items() if one.unit or (not proven and _THOUSANDS.fullmatch(one.body))
        ]
        if told:
            cell = max(told)
            note = f"numbers such as {cell.strip()!r} are read as {changed[n][cell]}"
            notes.append((n, note if proven else f"{note}; write them without separators of thousands"))
    if not changed:
        return PlainNumbers(rows)
    plain = [(line, list(row)) for line, row in rows]
    for n, numbers in changed.items():
        for _, row in plain:
            row[n] = numbers.get(row[n], row[n])
    return PlainNumbers(plain, notes)


def _numbers(cells: Collection[str], mark: str) -> dict[str, _Number]:
    """The cells of a column that are numbers; none if Python reads them as they are, or if few are."""
    odd = [cell for cell in cells if not _PLAIN.fullmatch(cell)]
    if not odd and (mark == "," or not any(_THOUSANDS.fullmatch(cell.strip()) for cell in cells)):
        return {}
    found = {cell: one for cell in cells if (one := _number(cell)) is not None}
    return found if len(found) >= len(cells) / 2 else {}


def _number(cell: str) -> _Number | None:
    match = _NUMBER.fullmatch(cell.strip()) if len(cell) <= _LONGEST else None
    if match is None:
        return None
    opened, minus, before, after, body, power, behind, closed, last = match.groups(default="")
    point, comma = (bool(form.fullmatch(body)) for form in (_POINT, _COMMA))
    signs = [one for one in (minus, after, last, opened) if one]
    if not (point or comma) or len(signs) > 1 or bool(opened) != bool(closed) or (before and behind):
        return None
    sign = "-" if signs and signs[0] != "+" else ""
    return _Number(sign, body, power, before or behind, point, comma)


def _decimal(
    found: Collection[_Number], mark: str, columns: Sequence[Collection[str]]
) -> tuple[str | None, bool]:
    """The decimal separator of a column, and whether it is proven; None if it has two, or no numbers."""
    signs = {_sign(one) for one in found} - {""}
    unclear = {sign for one in found if one.point and one.comma for sign in one.body if sign in ".,"}
    if not found or len(signs) > 1 or len(unclear) > 1:
        return None, False
    if signs or not unclear:
        return next(iter(signs), "."), True
    everywhere = {_sign(one) for cells in columns for cell in cells if (one := _number(cell))} - {""}
    if len(everywhere) == 1:
        return everywhere.pop(), True
    whole = [one.body for one in found if one.body.isdigit()]
    grouped = bool(whole) and max(map(len, whole)) <= 3  # 1.541 beside 980 is not 1.541
    (sign,) = unclear
    if mark == ",":
        return ".", True
    return ("." if sign == "," else ",") if grouped else sign, False


def has_decimal_comma(rows: Sequence[Sequence[str]], mark: str) -> bool:
    """Whether a table has numbers read with a decimal comma, and not more columns with a decimal point."""
    columns = [
        {cell for cell in column if cell.strip().lower() not in MISSING} for column in zip(*rows, strict=True)
    ]
    signs = Counter[str]()
    for cells in columns:
        found = [one for cell in cells if (one := _number(cell)) is not None]
        decimal, _ = _decimal(found, mark, columns)
        if decimal is not None and 2 * len(found) >= len(cells):
            signs[decimal] += any(decimal in one.body for one in found)
    return 0 < signs[","] >= signs["."] + (mark == ",")


def _sign(number: _Number) -> str:
    """The decimal separator that a number proves, or an empty text."""
    return "" if number.point == number.comma else "." if number.point else ","


def order_of(path: str | Path, rows: Sequence[tuple[int, Any]], given: Order | None = None) -> Order:
    """Whether the day or the month comes first in the dates of a column; "day" if there are no such dates.

    It follows from a number above 12, from dots between the numbers (31.12.2024 is always day first), or from
    the rows increasing in only one of the two orders.
    """
    found = [(line, match) for line, cell in rows if (match := _DATE.match(begin_of(str(cell).strip())))]
    if given is not None or not found:
        return given or "day"
    first = any(int(match[1]) > 12 for _, match in found)
    second = any(int(match[3]) > 12 for _, match in found)
    if first != second:
        return "day" if first else "month"
    if not first and found[0][1][2] == ".":
        return "day"
    orders: tuple[Order, ...] = ("day", "month")
    times = {order: [iso(match[0], order) for _, match in found] for order in orders}
    rising = [order for order in orders if all(one < other for one, other in pairwise(times[order]))]
    if not first and len(rising) == 1:
        return rising[0]
    line, match = found[0]
    raise DataError(
        f"{match[0][:40]!r} may begin with the day or the month; say which with --dates "
        "(data.dates): day or month, or write dates as 2024-01-31",
        path=path,
        line=line,
    )


def begin_of(text: str) -> str:
    """A time without the name of its weekday; of an interval, its begin.

    Example:
        >>> begin_of("Wed 25/01/2023"), begin_of("2021-01-04/2021-01-10"), begin_of("1.5.2023 - 8.5.2023")
        ('25/01/2023', '2021-01-04', '1.5.2023')
    """
    for width in (1, 3, 4):
        size = (len(text) - width) // 2
        first, between, second = text[:size], text[size:-size], text[-size:]
        if (
            size >= 8
            and _BETWEEN.fullmatch(between)
            and re.sub(r"\d", "0", first) == re.sub(r"\d", "0", second)
        ):
            text = first
            break
    return _WEEKDAY.sub("", text, count=1) if text[:1].isalpha() else text


def iso(text: str, order: Order) -> str:
    """Convert a date with day or month first to ISO 8601; other text is returned unchanged."""
    text = text.strip()
    if short := _MONTH.match(text):
        return f"{short[2]}-{int(short[1]):02d}"
    match = _DATE.match(text)
    if match is None:
        return text
    day, month = (match[1], match[3]) if order == "day" else (match[3], match[1])
    year = match[4] if len(match[4]) == 4 else f"{20 if int(match[4]) < 69 else 19}{match[4]}"
    return f"{year}-{int(month):02d}-{int(day):02d}" + (f" {match[5]}" if match[5] else "")
