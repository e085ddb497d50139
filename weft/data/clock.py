"""Parse times: the usual forms of ISO 8601, with or without a UTC offset.

Read next: calendar.py, the frequency of a series.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.data.dialect import Order, iso
from weft.errors import DataError

_SHORT = re.compile(r"(\d{4})(?:-(\d\d?))?$")  # 2024, 2024-01
_QUARTER = re.compile(r"(\d{4})-?Q([1-4])$", re.IGNORECASE)


class ParsedTime(NamedTuple):
    """A parsed time: the local time shown, and its UTC offset in seconds."""

    shown: np.datetime64
    offset: int | None


def parse(text: str) -> ParsedTime:
    """Parse a time in ISO 8601 form, also with slashes or as a quarter (2024-Q1).

    Raises:
        ValueError: the text is not a time.

    Example:
        >>> parse("2024-01-01T00:00:00+00:00")
        ParsedTime(shown=np.datetime64('2024-01-01T00:00:00'), offset=0)
        >>> parse("2024Q2").shown
        np.datetime64('2024-04-01T00:00:00')
    """
    text = text.strip().replace("/", "-")
    if short := _SHORT.match(text):
        return ParsedTime(np.datetime64(f"{short[1]}-{int(short[2] or 1):02d}-01", "s"), None)
    if quarter := _QUARTER.match(text):
        return ParsedTime(np.datetime64(f"{quarter[1]}-{3 * int(quarter[2]) - 2:02d}-01", "s"), None)
    if not text[:4].isdigit():
        raise ValueError(text)
    time = datetime.fromisoformat(re.sub(r"\s+(?=[+-]\d\d:?\d\d$|Z$)", "", text))
    away = time.utcoffset()
    return ParsedTime(
        np.datetime64(time.replace(tzinfo=None, microsecond=0), "s"),
        None if away is None else int(away.total_seconds()),
    )


def with_common_offset(clocks: Sequence[ParsedTime]) -> tuple[np.ndarray, str]:
    """Times [T] and their common UTC offset as text; "" without an offset.

    With a single offset the times stay as written. With several (summer time) they are converted to UTC,
    except dates without a time of day (all at the same clock time).

    Raises:
        ValueError: only some of the times have an offset.
    """
    shown = np.array([clock.shown for clock in clocks], dtype="datetime64[s]")
    offsets = {clock.offset for clock in clocks}
    if offsets == {None}:
        return shown, ""
    if None in offsets:
        raise ValueError("some times have an offset from UTC and some have none; write all in one way")
    if len(offsets) == 1:
        seconds = next(one for one in offsets if one is not None)
        minutes = abs(seconds) // 60
        return shown, f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    if len(np.unique(shown - shown.astype("datetime64[D]"))) == 1:
        return shown, ""
    away = np.array([clock.offset for clock in clocks], dtype="timedelta64[s]")
    return shown - away, "+00:00"


def read_times(
    path: str | Path, rows: Sequence[tuple[int, Any]], order: Order = "day"
) -> tuple[np.ndarray, str]:
    """Parse cells (line number, content) to increasing times [T] and their UTC offset as text.

    Raises:
        DataError: a cell is not a time, or not later than the one before; names the line.
    """
    clocks = []
    for line, cell in rows:
        try:
            clocks.append(parse(iso(str(cell), order)))
        except ValueError:
            raise DataError(
                f"{str(cell)[:40]!r} is not a time; write 2024-01-31, 2024-01-31 13:00, "
                "31.01.2024, 2024-01 or 2024-Q1",
                path=path,
                line=line,
            ) from None
    try:
        times, zone = with_common_offset(clocks)
    except ValueError as error:
        odd = next(n for n, one in enumerate(clocks) if (one.offset is None) != (clocks[0].offset is None))
        raise DataError(str(error), path=path, line=rows[odd][0]) from None
    wrong = np.flatnonzero(np.diff(times).astype(np.int64) <= 0)
    if len(wrong):
        (_, before), (line, cell) = rows[wrong[0]], rows[wrong[0] + 1]
        same = times[wrong[0]] == times[wrong[0] + 1]
        what = "is a duplicate" if same else f"comes after {str(before)[:40]}"
        raise DataError(
            f"{str(cell)[:40]} {what}; sort the rows by time and keep each time once", path=path, line=line
        )
    return times, zone
