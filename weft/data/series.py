"""Read time series from tables: wide (one column per series) or long (unique_id, ds, y).

Missing values become NaN and missing periods become rows of NaN. Rows at the end without values are the
future, with known covariates only. Errors for irregular, decreasing or duplicate times, infinite values and
cells that are not numbers name file and line.
Read next: clock.py and periods.py, times; future.py, covariates known ahead; windows.py, the model's inputs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.data.clock import read_times
from weft.data.dialect import Order, order_of, with_points
from weft.data.parquet import parquet_rows
from weft.data.periods import aligned, resampled, shown
from weft.data.tables import TableFile
from weft.errors import ConfigError, DataError
from weft.wording import plural

MISSING = {"", "na", "n/a", "nan", "null", "none"}
TIMES = ("ds", "date", "datetime", "time", "timestamp", "month", "day")
LONG = ("unique_id", "ds", "y")
AGGREGATIONS = ("mean", "sum", "first", "last", "min", "max")


MOST_COLUMNS = 100_000
"""Maximum columns of a CSV table; each is a series with its own name, scale and windows."""


class TimeSeries(NamedTuple):
    """One or more values measured at the same times, from the first measured row to the last."""

    name: str
    times: np.ndarray  # [T] datetime64[s]; int64 row numbers without dates
    values: np.ndarray  # [T, F] float64, NaN where missing
    known: np.ndarray  # [T, G] float64, covariates that are known ahead
    past: np.ndarray  # [T, P] float64, covariates with unknown future
    ahead: np.ndarray  # [A, G] float64, known covariates of the periods after the last
    frequency: str  # a pandas alias; "" without dates or with a single one


class Columns(NamedTuple):
    """The roles of a table's columns, and the frequency of its rows.

    Args:
        time: the column of times; None finds it by name.
        targets: columns to forecast; if empty, all other columns of a wide table.
        known: covariates that are known ahead, such as holidays.
        past: covariates with unknown future, such as the weather.
        frequency: a pandas alias; None infers it.
        resample: how to aggregate rows into periods (see AGGREGATIONS); None requires regular rows.
        id: the column with the series' names, if one column has the values of several series.
        dates: whether dates begin with the day or the month; None infers it.
    """

    time: str | None = None
    targets: Sequence[str] = ()
    known: Sequence[str] = ()
    past: Sequence[str] = ()
    frequency: str | None = None
    resample: str | None = None
    id: str | None = None
    dates: Order | None = None


class SeriesTable(NamedTuple):
    """The contents of a file."""

    series: list[TimeSeries]
    columns: tuple[str, ...]  # F names
    known: tuple[str, ...]  # G names
    past: tuple[str, ...]  # P names
    long: bool
    zone: str = ""  # the UTC offset of all times, such as +00:00
    notes: tuple[str, ...] = ()  # remarks for the user, such as missing periods


def read_series(path: str | Path, which: Columns = Columns()) -> SeriesTable:  # noqa: B008  it never changes
    """Read all series of a file.

    Args:
        path: a table with or without a header, see data/tables.py.
        which: columns.

    Raises:
        DataError: a line cannot be read; names file and line.
        ConfigError: unknown column or frequency.
    """
    path = Path(path)
    header, rows = read_rows(path)
    lower = [name.lower() for name in header]
    named = which.id is None and all(name in lower for name in LONG) and not which.targets
    long = named or which.id is not None
    group = column_of(path, header, which.id or "unique_id") if long else -1
    if named:
        place = lower.index("ds")
        columns: tuple[str, ...] = ("y",)
    else:
        place = time_column(path, header, which.time, rows)
        beside = {*columns_of(path, header, (*which.known, *which.past)), place, group}
        columns = tuple(which.targets) or tuple(name for n, name in enumerate(header) if n not in beside)
    if long and len(columns) != 1:
        raise ConfigError(
            f"{path}: expected one column of values beside the series' names ({which.id}), got "
            f"{', '.join(columns)[:200]}; name it: data.targets (--target for weft init)"
        )
    _check_apart(columns, which)
    groups: dict[str, list[tuple[int, list[Any]]]] = {}
    for line, row in rows:
        if len(row) != len(header):
            why = f"expected {plural(len(header), 'cell')}, got {len(row)}; correct or remove the line"
            raise DataError(why, path=path, line=line)
        groups.setdefault(str(row[group]) if long else "", []).append((line, row))
    if not groups:
        raise DataError("expected a header and rows of numbers, got no row", path=path)
    kinds = [columns_of(path, header, names) for names in (columns, which.known, which.past)]
    if place >= 0:
        which = which._replace(dates=order_of(path, [(line, row[place]) for line, row in rows], which.dates))
    series, zones, notes = [], set(), []
    for name, own in groups.items():
        one, zone, note = _series(path, name, own, place, kinds, header, which)
        series.append(one)
        zones.add(zone)
        notes += [note] if note else []
    zone = zones.pop() if len(zones) == 1 else ""
    return SeriesTable(series, columns, tuple(which.known), tuple(which.past), long, zone, tuple(notes))


def read_rows(path: Path) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    """Header and numbered rows of a table; columns without a header are named 1, 2, ..."""
    if path.suffix == ".parquet":
        return parquet_rows(path)
    table = TableFile(path)
    if (count := len(table.first)) > MOST_COLUMNS:
        raise DataError(
            f"expected at most {MOST_COLUMNS:,} columns, got {count:,}; give fewer, or one row for "
            "each series and time (unique_id, ds, y)",
            path=path,
        )
    rows = list(with_points([(row.number, row.cells) for row in table], table.mark))
    if all(_is_number(cell) for cell in rows[0][1]):
        return [str(n + 1) for n in range(count)], rows
    return [cell.strip() for cell in table.first], rows[1:]


def time_column(path: Path, header: list[str], name: str | None, rows: Sequence[Any]) -> int:
    """The index of the column of times, -1 if there is none."""
    if name is not None:
        return column_of(path, header, name)
    for n, column in enumerate(header):
        if column.lower() in TIMES:
            return n
    return 0 if rows and not _is_number(rows[0][1][0]) and not _missing(rows[0][1][0]) else -1


def column_of(path: Path, header: list[str], name: str) -> int:
    """The index of a column by its case-insensitive name.

    Raises:
        ConfigError: unknown column.
    """
    return columns_of(path, header, [name])[0]


def columns_of(path: Path, header: Sequence[str], names: Sequence[str]) -> list[int]:
    """The indices of several columns; an exact match wins, then the first match ignoring case.

    Raises:
        ConfigError: unknown column.
    """
    exact = {name: number for number, name in reversed(list(enumerate(header)))}
    folded = {name.lower(): number for number, name in reversed(list(enumerate(header)))}
    for name in names:
        if name not in exact and name.lower() not in folded:
            raise ConfigError(f"{path}: no such column {name!r}; the file has {', '.join(header[:30])[:300]}")
    return [exact.get(name, folded.get(name.lower(), -1)) for name in names]


def _check_apart(columns: Sequence[str], which: Columns) -> None:
    """Check that no column has two roles."""
    names = [*columns, *which.known, *which.past]
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ConfigError(f"column {name!r} is named twice; name it once under targets, known or past")
        seen.add(name)


def _series(
    path: Path,
    name: str,
    rows: list[tuple[int, list[Any]]],
    place: int,
    kinds: Sequence[list[int]],
    header: list[str],
    which: Columns,
) -> tuple[TimeSeries, str, str]:
    """A series, the UTC offset of its times, and a note about missing periods."""
    table = np.concatenate([numbers_of(path, rows, kind, header) for kind in kinds], 1)  # [T, F + G + P]
    ends = np.cumsum([len(kind) for kind in kinds])
    measured = np.isfinite(table[:, : ends[0]]).any(1)
    _check_known(path, rows, table[:, ends[0] : ends[1]], measured, [header[n] for n in kinds[1]])
    times, zone, frequency, note = np.arange(len(rows)), "", "", ""
    if place >= 0:
        times, zone = read_times(path, [(line, row[place]) for line, row in rows], which.dates or "day")
        called = f"{path}: series {name!r}" if name else f"{path}"
        if which.resample is not None and which.frequency is not None:
            how = [which.resample] * int(ends[0]) + ["mean"] * int(ends[2] - ends[0])
            times, table = resampled(times, table, which.frequency, how)
        grid = aligned(called, times, which.frequency)
        note = _note(called, grid.frequency, np.setdiff1d(grid.times, times))
        whole = np.full((len(grid.times), table.shape[1]), np.nan)
        whole[grid.places] = table
        times, table, frequency = grid.times, whole, grid.frequency
    values, known, past = np.split(table, ends[:2], 1)
    found = np.flatnonzero(np.isfinite(values).any(1))
    end = int(found[-1]) + 1 if len(found) else len(values)
    parts = (times[:end], values[:end], known[:end], past[:end], known[end:])
    return TimeSeries(name, *parts, frequency), zone, note


def _check_known(
    path: Path, rows: list[tuple[int, list[Any]]], known: np.ndarray, measured: np.ndarray, names: list[str]
) -> None:
    """Check that known covariates have values wherever something was measured."""
    holes = np.argwhere(np.isnan(known) & measured[:, None])
    if len(holes):
        row, column = holes[0].tolist()
        raise DataError(
            f"expected a number in column {names[column][:40]}, which is known ahead, "
            "got none; fill it in (0 where nothing happens), or name the column under past",
            path=path,
            line=rows[row][0],
        )


def _note(called: str, frequency: str, missing: np.ndarray) -> str:
    if not len(missing):
        return ""
    several = f" to {shown(missing[-1])}" if len(missing) > 1 else ""
    return (
        f"{called}: inserted {plural(len(missing), 'missing period')} of the frequency {frequency} without "
        f"values ({shown(missing[0])}{several})"
    )


def numbers_of(
    path: Path, rows: list[tuple[int, list[Any]]], kind: list[int], header: list[str]
) -> np.ndarray:
    """[T, K] numbers of some columns, NaN where missing."""
    found = [[_number(path, line, row[n], header[n]) for n in kind] for line, row in rows]
    return np.array(found, dtype=np.float64).reshape(len(rows), len(kind))


def _missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _number(path: Path, line: int, cell: Any, column: str) -> float:
    if _missing(cell):
        return float("nan")
    try:
        value = float(cell)
    except (TypeError, ValueError):
        why = f"{str(cell)[:40]!r} in column {column[:40]} is not a number; correct it or leave it empty"
        raise DataError(why, path=path, line=line) from None
    if np.isinf(value):
        why = f"{str(cell)[:40]} in column {column[:40]} is infinite; correct it or leave it empty"
        raise DataError(why, path=path, line=line)
    return value
