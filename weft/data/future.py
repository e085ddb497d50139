"""The future of a series: the next times, and their known covariates.

Read next: series.py.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.data.calendar import after, resampled, step_of
from weft.data.series import (
    LONG,
    Columns,
    SeriesTable,
    TimeSeries,
    coded_rows,
    column_times,
    columns_of,
    groups_of,
    numbers_of,
    read_rows,
    time_column,
)
from weft.data.times import in_order, shown
from weft.errors import DataError, caution


class Future(NamedTuple):
    """Covariates known ahead."""

    rows: dict[str, dict[Any, np.ndarray]]  # [G] by the name of the series ("" in a wide table) and the time
    numbered: bool  # whether the table has no times, but rows in order
    notes: tuple[str, ...]


def read_future(path: str | Path, which: Columns, long: bool) -> Future:
    """Read covariates known ahead."""
    path = Path(path)
    header, rows, _ = read_rows(path, which.time)
    place = time_column(path, header, which.time, rows)
    known = columns_of(path, header, which.known)
    coded_rows(
        path, header, rows, which._replace(categories=[one for one in which.categories if one in which.known])
    )
    ids = columns_of(path, header, which.id or LONG[:1]) if long else []
    column = column_times(path, rows, place, which) if place >= 0 and rows else None
    how = ["last" if name in which.categories else "mean" for name in which.known]
    found: dict[str, dict[Any, np.ndarray]] = {}
    unsorted = False
    for name, at in groups_of(rows, ids).items():
        numbers = numbers_of(path, [rows[n] for n in at], known, header)
        if column is None:
            found[name] = dict(enumerate(numbers))
            continue
        lines, again = [rows[n][0] for n in at], which.resample is not None
        times, order, moved = in_order(path, name, lines, column.times[at], zone=which.zone, again=again)
        numbers, unsorted = numbers[order], unsorted or moved
        if which.resample is not None and which.frequency is not None:
            times, numbers = resampled(times, numbers, which.frequency, how)
        found[name] = dict(zip(times.tolist(), numbers, strict=True))
    if unsorted:
        caution(f"{path}: the rows were sorted by time")
    return Future(found, column is None, column.notes if column else ())


def with_future(table: SeriesTable, future: Future, place: str) -> SeriesTable:
    """The same series with known covariates from a table of the future.

    Rows of other times are ignored. The future's table takes precedence over values already known.
    """
    series = []
    for one in table.series:
        rows = future.rows.get(one.name, {})
        count = len(one.ahead) + len(rows)
        times = coming(one, count)
        keys = range(count) if future.numbered and times.dtype.kind != "M" else times.tolist()
        ahead = np.full((count, one.known.shape[1]), np.nan)
        ahead[: len(one.ahead)] = one.ahead
        found = [(n, rows[key]) for n, key in enumerate(keys) if key in rows]
        if not found:
            called = f"series {one.name!r}" if one.name else "the series"
            first = shown(times[0]) if count else "the next"
            raise DataError(f"{place}: expected rows for the times after {called}, from {first} on, got none")
        for n, numbers in found:
            given = ahead[n, : len(numbers)]
            given[:] = np.where(np.isnan(numbers), given, numbers)
        series.append(one._replace(ahead=ahead[: max(len(one.ahead), found[-1][0] + 1)]))
    return table._replace(series=series, assumed=tuple(dict.fromkeys((*table.assumed, *future.notes))))


def coming(series: TimeSeries, count: int) -> Any:
    """The next `count` times of a series."""
    if series.times.dtype.kind != "M":
        return series.times[-1] + step_of(series.times) * np.arange(1, count + 1)
    if not series.frequency:
        raise DataError(
            f"series {series.name!r}: expected at least 2 rows to see how often they come, got 1; give "
            "more, or data.frequency"
        )
    return after(series.frequency, series.times[-1], count)


def joined(times: Any, ahead: Any) -> Any:
    """Times followed by others of the same kind."""
    return times.append(ahead) if times.dtype.kind == "M" else np.concatenate([times, ahead])
