"""Variants of numbers and dates in tables: the decimal separator, and the order of day and month.

Read next: series.py, which reads them; guess.py, which guesses columns.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from weft.errors import DataError

_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. \u00a0\u202f']\d{3})+),\d+")
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_POINTED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")
_POINT = re.compile(r"[+-]?\d+(,\d{3})*\.\d+")
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})\.?(?:[ T,]+(\S.*))?$")
_MONTH = re.compile(r"(\d{1,2})[./](\d{4})$")

Row = tuple[int, list[Any]]
"""Line number and cells."""

Order = Literal["day", "month"]
"""The first part of a date: 31.12.2024 or 12/31/2024."""


def with_points(rows: Sequence[Row], mark: str) -> Sequence[Row]:
    """The same rows with numbers in Python's format: 1.234,5 and 1,5 become 1234.5 and 1.5.

    Args:
        rows: of a table.
        mark: its delimiter. If it is a comma, or if the table has decimal points, 1,234 means 1234.

    Example:
        >>> with_points([(2, ["1,5", "a"]), (3, ["1.234,25", "b"])], ";")
        [(2, ['1.5', 'a']), (3, ['1234.25', 'b'])]
        >>> with_points([(2, ["1,500", "0.5"])], ";")
        [(2, ['1500', '0.5'])]
    """
    cells = {str(cell).strip() for _, row in rows for cell in row if isinstance(cell, str) and "," in cell}
    numbers = [cell for cell in cells if _COMMA.fullmatch(cell) or _GROUPED.fullmatch(cell)]
    if not numbers:
        return rows
    points = any(_POINT.fullmatch(str(cell).strip()) and not _POINTED.fullmatch(str(cell).strip())
                 for _, row in rows for cell in row)  # fmt: skip
    if all(map(_GROUPED.fullmatch, numbers)) and (points or mark == ","):
        return [(line, [_thousands(cell) for cell in row]) for line, row in rows]
    if points:
        return rows  # two decimal separators in one table: reading the cells will report them
    return [(line, [_decimal(cell) for cell in row]) for line, row in rows]


def _decimal(cell: Any) -> Any:
    if isinstance(cell, str) and _COMMA.fullmatch(cell.strip()):
        return re.sub(r"[. \u00a0\u202f']", "", cell.strip()).replace(",", ".")
    if isinstance(cell, str) and _POINTED.fullmatch(cell.strip()):
        return cell.strip().replace(".", "")
    return cell


def _thousands(cell: Any) -> Any:
    number = isinstance(cell, str) and (_GROUPED.fullmatch(cell.strip()) or _POINT.fullmatch(cell.strip()))
    return cell.replace(",", "") if number else cell


def order_of(path: str | Path, rows: Sequence[tuple[int, Any]], given: Order | None = None) -> Order:
    """Whether the day or the month comes first in the dates of a column; "day" if there are no such dates.

    It follows from a number above 12, from dots between the numbers (31.12.2024 is always day first), or from
    the rows increasing in only one of the two orders.

    Args:
        path: of the table, for the error.
        rows: line number and cell.
        given: the user's choice, if any.

    Raises:
        DataError: both orders fit.
    """
    found = [(line, match) for line, cell in rows if (match := _DATE.match(str(cell).strip()))]
    if given is not None or not found:
        return given or "day"
    first = any(int(match[1]) > 12 for _, match in found)
    second = any(int(match[3]) > 12 for _, match in found)
    if first != second:
        return "day" if first else "month"
    if not first and found[0][1][2] == ".":
        return "day"
    orders: tuple[Order, ...] = ("day", "month")
    rising = [order for order in orders if _rises([iso(match[0], order) for _, match in found])]
    if not first and len(rising) == 1:
        return rising[0]
    line, match = found[0]
    raise DataError(
        f"{match[0][:40]!r} may begin with the day or the month; say which: data.dates: day "
        "or month (--dates for weft init)",
        path=path,
        line=line,
    )


def iso(text: str, order: Order) -> str:
    """Convert a date with day or month first to ISO 8601; other text is returned unchanged.

    Example:
        >>> iso("1.2.2024 13:05", "day"), iso("1/2/24", "month"), iso("02/2024", "day"), iso("2024-02", "day")
        ('2024-02-01 13:05', '2024-01-02', '2024-02', '2024-02')
    """
    text = text.strip()
    if short := _MONTH.match(text):
        return f"{short[2]}-{int(short[1]):02d}"
    match = _DATE.match(text)
    if match is None:
        return text
    day, month = (match[1], match[3]) if order == "day" else (match[3], match[1])
    year = match[4] if len(match[4]) == 4 else f"{20 if int(match[4]) < 69 else 19}{match[4]}"
    return f"{year}-{int(month):02d}-{int(day):02d}" + (f" {match[5]}" if match[5] else "")


def _rises(texts: Sequence[str]) -> bool:
    return all(one < other for one, other in pairwise(texts))
