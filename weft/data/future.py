"""The future of a series: the next times, and their known covariates.

Read next: series.py.
"""

from pathlib import Path
from typing import Any

import numpy as np

from weft.data.calendar import after
from weft.data.clock import read_times
from weft.data.dialect import order_of
from weft.data.periods import shown
from weft.data.series import Columns, SeriesTable, TimeSeries, column_of, numbers_of, read_rows, time_column
from weft.errors import DataError


def read_future(path: str | Path, which: Columns, long: bool) -> dict[str, dict[Any, np.ndarray]]:
    """Read covariates known ahead, [G] by the name of the series ("" in a wide table) and the time.

    Args:
        path: a table with the columns `which.known`, the times, and unique_id if there are several series.
        which: columns; targets and past covariates may be absent.
        long: whether the series have names.

    Raises:
        DataError, ConfigError: as read_series.
    """
    path = Path(path)
    header, rows = read_rows(path)
    place = time_column(path, header, which.time, rows)
    known = [column_of(path, header, name) for name in which.known]
    named = column_of(path, header, which.id or "unique_id") if long else -1
    if any(len(row) != len(header) for _, row in rows):
        line = next(line for line, row in rows if len(row) != len(header))
        raise DataError(f"expected {len(header)} cells; correct or remove the line", path=path, line=line)
    groups: dict[str, list[tuple[int, list[Any]]]] = {}
    for line, row in rows:
        groups.setdefault(str(row[named]) if long else "", []).append((line, row))
    order = order_of(path, [(line, row[place]) for line, row in rows if place >= 0], which.dates)
    found: dict[str, dict[Any, np.ndarray]] = {}
    for name, group in groups.items():
        numbers = numbers_of(path, group, known, header)
        if place < 0:
            found[name] = dict(enumerate(numbers))
            continue
        times, _ = read_times(path, [(line, row[place]) for line, row in group], order)
        found[name] = dict(zip(times.tolist(), numbers, strict=True))
    return found


def with_future(table: SeriesTable, future: dict[str, dict[Any, np.ndarray]], place: str) -> SeriesTable:
    """The same series with known covariates from a table of the future (see read_future).

    Rows of other times are ignored. The future's table takes precedence over values already known.

    Raises:
        DataError: it has no row for the periods after the last one of a series.
    """
    series = []
    for one in table.series:
        rows = future.get(one.name, {})
        count = len(one.ahead) + len(rows)
        times = coming(one, count)
        keys = range(count) if not one.frequency else times.tolist()
        ahead = np.full((count, one.known.shape[1]), np.nan)
        ahead[: len(one.ahead)] = one.ahead
        found = [(n, rows[key]) for n, key in enumerate(keys) if key in rows]
        if not found:
            called = f"series {one.name!r}" if one.name else "the series"
            first = shown(times[0]) if one.frequency else "the next"
            raise DataError(f"{place}: expected rows for the times after {called}, from {first} on, got none")
        for n, numbers in found:
            ahead[n] = np.where(np.isnan(numbers), ahead[n], numbers)
        series.append(one._replace(ahead=ahead[: max(len(one.ahead), found[-1][0] + 1)]))
    return table._replace(series=series)


def coming(series: TimeSeries, count: int) -> np.ndarray:
    """The next `count` times of a series.

    Raises:
        DataError: the series has a single row, so its frequency is unknown.
    """
    if series.times.dtype.kind != "M":
        return series.times[-1] + np.arange(1, count + 1)
    if not series.frequency:
        raise DataError(
            f"series {series.name!r}: expected at least 2 rows to see how often they come, got 1; give "
            "more, or data.frequency"
        )
    return after(series.frequency, series.times[-1], count)
