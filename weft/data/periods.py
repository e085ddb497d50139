"""Files that have a series, or a day of one, in each row: M4, M5, offices, meters, and Monash's .tsf.

Read next: series.py, which reads their numbers.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.data.calendar import after
from weft.data.dialect import MISSING, order_of
from weft.data.lines import each_line, read_lines
from weft.data.tables import is_number
from weft.data.times import are_times, read_times
from weft.errors import DataError

Rows = Sequence[tuple[int, list[str]]]  # lines and their cells

_PERIOD = re.compile(r"(19|20)\d\d([-/ ]?([MQTW]?\d\d?)(-\d\d?)?)?( ?\[YR\d{4}\])?|\d\d?/\d\d?/\d{2,4}")
_CLOCK = re.compile(r"\d\d?[:.]\d\d(:\d\d)?|(h|hh|he|hour|p|period)[_ ]?(\d\d?)", re.IGNORECASE)
"""Columns of the hours of a day."""

_COUNTED = re.compile(r"(v|d_|f|t|x|m|week_?|day_?)\d+", re.IGNORECASE)
"""Columns of steps: M4 has V2, V3 and so on, M5 d_1, d_2, and M3 1, 2."""

_FLAG = re.compile(r"(?<=\d) [a-z]{1,3}$")
"""A remark after a number, such as Eurostat's p for provisional."""

FEW = 50  # rows that tell what columns hold


class Group(NamedTuple):
    """The rows of a series."""

    name: str
    rows: Rows
    times: Any  # [T], None without times


def of_series(names: Sequence[str], rows: Rows) -> list[int]:
    """The places of the columns that are times, if each row of a table is a series; none if it is not."""
    if not rows or are_times([row[0] for _, row in rows[:FEW]]):
        return []
    dated = [n for n, name in enumerate(names) if _PERIOD.fullmatch(name)]
    if 2 < len(dated) > len(names) / 2:
        return dated[len(dated) == len(names) :]
    counted = [n for n, name in enumerate(names) if _COUNTED.fullmatch(name)]
    if not counted and not all(map(str.isdecimal, names)):
        counted = [n for n, name in enumerate(names) if name.isdecimal()]
    several = 2 < len(counted) > len(names) / 2 and not is_number(rows[0][1][0])
    return counted[len(counted) == len(names) :] if several else []


def of_days(names: Sequence[str], rows: Rows) -> list[int]:
    """The places of the columns that are times of the day, if each row of a table is a day."""
    clocks = [n for n, name in enumerate(names) if _CLOCK.fullmatch(name)]
    return clocks if rows and len(clocks) > max(2, len(names) / 2) else []


def series_in_rows(
    path: Path, names: Sequence[str], rows: Rows, places: Sequence[int], ids: Sequence[int]
) -> tuple[Iterator[Group], str, str]:
    """The series of a table with one in each row, the base of their times, and what was assumed."""
    texts = [re.sub(r" ?\[.*", "", names[n]) for n in places]
    if _COUNTED.fullmatch(texts[0]):
        texts = [re.sub(r".*\D", "", text) for text in texts]
    column = read_times(path, cells := list(enumerate(texts)), order_of(path, cells))
    others = [n for n in range(len(names)) if n not in places]
    alone = [[n] for n in others if len({row[n] for _, row in rows}) == len(rows)]
    ids = ids or next(iter(alone), others)
    called = ", ".join(names[n] for n in ids)
    said = f"{path}: each row is a series, called after {called}; {names[places[0]]} to {names[places[-1]]} "

    def groups() -> Iterator[Group]:
        for line, row in rows:
            name = "/".join(row[n].strip() for n in ids)
            cells = [_FLAG.sub("", row[n].strip()) if " " in row[n] else row[n] for n in places]
            yield Group(name, [(line, [cell]) for cell in cells], column.times)

    return groups(), column.zone, f"{said}are its times"


def long_days(names: Sequence[str], rows: Rows, places: Sequence[int], day: int) -> tuple[list[str], Rows]:
    """A table with a day in each row as one with a time in each row and the column y, without empty cells."""
    clocks = _clocks([names[n] for n in places])
    others = [n for n in range(len(names)) if n != day and n not in places]
    long = [
        (line, [f"{row[day].strip()} {clock}", *(row[other] for other in others), row[n]])
        for line, row in rows
        for n, clock in zip(places, clocks, strict=True)
        if row[n].strip().lower() not in MISSING
    ]
    return [names[day], *(names[n] for n in others), "y"], long


def _clocks(names: Sequence[str]) -> list[str]:
    """The times of the day that columns are named after.

    Example:
        >>> _clocks(["00:00", "00.30"]), _clocks(["12:00", "0:00"])
        (['00:00', '00:30'], ['12:00', '24:00'])
        >>> _clocks([f"h{n}" for n in range(1, 26)])[-2:]
        ['24:00', '25:00']
        >>> _clocks([f"hh_{n}" for n in range(48)])[-2:], _clocks([f"p{n}" for n in range(1, 51)])[-2:]
        (['23:00', '23:30'], ['24:00', '24:30'])
    """
    found = [_CLOCK.fullmatch(name) for name in names]
    numbers = [int(one[3] or 0) for one in found if one]
    if not all(one and one[3] for one in found):
        clocks = [name.replace(".", ":") for name in names]
        return [*clocks[:-1], re.sub("^0?0:00", "24:00", clocks[-1])]  # the end of the day comes last
    minutes = 60 if len(names) < 46 else 30 if len(names) < 92 else 15
    begin = 0 if minutes == 60 else min(numbers)  # hours from 1 are called after their ends, as in a column
    return [f"{(n - begin) * minutes // 60:02d}:{(n - begin) * minutes % 60:02d}" for n in numbers]


_LENGTHS = {"minutely": "min", "hourly": "h", "daily": "D", "weekly": "7D", "monthly": "1 month",
            "quarterly": "3 months", "yearly": "12 months", "half_hourly": "30min"}  # fmt: skip
_UNITS = {"seconds": "s", "minutes": "min", "hours": "h", "days": "D"}


def read_tsf(path: Path) -> Iterator[Group]:
    """The series of a file of the Monash archive."""
    often, attributes, begun = "", list[str](), False
    for number, line in enumerate(read_lines(path), 1):
        words = line.split()
        if begun and words:
            yield _monash(path, number, line, attributes, often)
        elif words[:1] == ["@attribute"]:
            attributes += words[1:2]
        elif words[:1] == ["@frequency"]:
            count, _, unit = words[-1].partition("_")
            often = _LENGTHS.get(words[-1]) or count + _UNITS.get(unit, unit)
        begun = begun or words[:1] == ["@data"]
    if not begun:
        raise DataError("expected @attribute, @frequency and @data, and a series in each line", path=path)


def horizon_of(path: Path) -> int | None:
    """The @horizon of a .tsf: the rows that its competition forecasts; None if it names none."""
    for line in each_line(path) if path.suffix.lower() == ".tsf" else ():
        words = str(line).split()
        if words[:1] == ["@horizon"] and words[-1].isdecimal():
            return int(words[-1])
        if words[:1] == ["@data"]:
            break
    return None


def _monash(path: Path, line: int, text: str, attributes: Sequence[str], often: str) -> Group:
    parts = text.split(":")
    if len(parts) != len(attributes) + 1:
        what = f"expected {len(attributes)} attributes and the values, with : between them"
        raise DataError(f"{what}, got {len(parts)} parts; correct the line", path=path, line=line)
    told = dict(zip(attributes, parts, strict=False))
    cells = [(line, [cell]) for cell in parts[-1].split(",")]
    times: Any = np.arange(len(cells))
    if often and (first := told.get("start_timestamp")):
        first = re.sub(r" (\d\d)-(\d\d)-(\d\d)$", r" \1:\2:\3", first.strip())
        times = read_times(path, [(line, first)]).times
        times = times.append(after(often, times[0], len(cells) - 1))
    return Group(told.get("series_name", str(line)), cells, times)
