"""Time series from CSV or Parquet: wide (a column a series) or long (unique_id, ds, y).

Missing values become NaN; a time that is missing in a regular series becomes a row of NaN; times that go
back or stand twice, infinite values and cells that are no numbers are named by file and line.
Read next: windows.py, what a model sees of them.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.data.commas import check_commas
from weft.data.lines import read_lines
from weft.errors import ConfigError, DataError

MISSING = {"", "na", "n/a", "nan", "null", "none"}
TIMES = ("ds", "date", "datetime", "time", "timestamp", "month", "day")
LONG = ("unique_id", "ds", "y")
_YEAR = re.compile(r"\d{4}(\D|$)")


FREE_CELLS = 4_000_000
"""Of a Parquet file, however small it is; a larger file may have a cell for each byte."""


class Series(NamedTuple):
    """One or several values measured at the same times."""

    name: str
    times: np.ndarray  # [T] datetime64[s]; int64 row numbers where there are no dates
    values: np.ndarray  # [T, F] float64, NaN where missing
    known: np.ndarray  # [T, G] float64, covariates that are known ahead


class Table(NamedTuple):
    """What a file holds."""

    series: list[Series]
    columns: tuple[str, ...]  # F names
    known: tuple[str, ...]  # G names
    long: bool


def read_series(
    path: str | Path, *, time: str | None = None, targets: Sequence[str] = (), known: Sequence[str] = ()
) -> Table:
    """All series of a file.

    Args:
        path: .csv (also .gz, .xz, .zst) with or without a header line, or .parquet.
        time: the column of the times; found by its name where None.
        targets: columns to forecast; all others in a wide table where empty.
        known: columns of covariates that are known ahead, such as a holiday.

    Raises:
        DataError: names file and line of what cannot be read.
        ConfigError: a column that is not there.
    """
    path = Path(path)
    header, rows = _parquet(path) if path.suffix == ".parquet" else _csv(path)
    lower = [name.lower() for name in header]
    long = all(name in lower for name in LONG) and not targets
    if long:
        where = {name: lower.index(name) for name in LONG}
        place = where["ds"]
        columns: tuple[str, ...] = ("y",)
    else:
        place = _time_column(path, header, time, rows)
        columns = tuple(targets) or tuple(
            name for n, name in enumerate(header) if n != place and name not in known
        )
    picked = [_column(path, header, name) for name in (["y"] if long else columns)]
    extra = [_column(path, header, name) for name in known]
    groups: dict[str, list[tuple[int, list[Any]]]] = {}
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"{path}:{line}: {len(row)} cells, need {len(header)}; mend or remove the line")
        groups.setdefault(str(row[where["unique_id"]]) if long else "", []).append((line, row))
    if not groups:
        raise DataError(f"{path}: no row of numbers; a header and rows are needed")
    series = [_series(path, name, group, place, picked, extra, header) for name, group in groups.items()]
    return Table(series, columns, tuple(known), long)


def step_of(times: np.ndarray) -> Any:
    """The usual distance between two times: seconds, or months where times are months (as datetime64[M])."""
    if len(times) < 2 or times.dtype.kind != "M":
        return np.int64(1)
    distance = np.median(np.diff(times).astype(np.int64))
    if 28 * 86400 <= distance <= 31 * 86400:
        return np.timedelta64(1, "M")
    return np.timedelta64(int(distance), "s")


def is_months(step: Any) -> bool:
    """Whether a distance is a month, which has no fixed number of seconds."""
    return isinstance(step, np.timedelta64) and np.datetime_data(step.dtype)[0] == "M"


def after(times: np.ndarray, count: int) -> np.ndarray:
    """The next times after those of a series, [count]."""
    step = step_of(times)
    if times.dtype.kind != "M":
        return times[-1] + np.arange(1, count + 1)
    if is_months(step):
        day = times[-1] - times[-1].astype("datetime64[M]")
        months = times[-1].astype("datetime64[M]") + np.arange(1, count + 1)
        return months.astype("datetime64[s]") + day
    return times[-1] + step * np.arange(1, count + 1)


def _csv(path: Path) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    reader = csv.reader(line + "\n" for line in read_lines(path))
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}; quote the cell or mend the line") from None
    if not rows:
        raise DataError(f"{path}: is empty; a header and rows are needed")
    first = rows[0][1]
    check_commas(path, first)
    if all(_is_number(cell) for cell in first):
        return [str(n + 1) for n in range(len(first))], rows
    return [cell.strip() for cell in first], rows[1:]


def as_parquet(table: bytes, path: Path) -> bytes:
    """A CSV with a header as a Parquet file: unique_id as text, ds as it looks, every other column a float64.

    Args:
        table: in UTF-8; nothing at all becomes nothing.
        path: what errors name.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    try:
        from pyarrow import csv, float64, parquet, string
    except ImportError:
        raise _without_pyarrow(path) from None
    if not table:
        return b""
    names = table.decode().partition("\n")[0].split(",")
    types = {name: float64() for name in names if name not in ("unique_id", "ds")}
    convert = csv.ConvertOptions(column_types={**types, "unique_id": string()})
    written = io.BytesIO()
    parquet.write_table(csv.read_csv(io.BytesIO(table), convert_options=convert), written)
    return written.getvalue()


def _without_pyarrow(path: Path) -> ConfigError:
    return ConfigError(f"{path}: Parquet needs pyarrow (pip install 'weft[parquet]'); or take CSV")


def _parquet(path: Path) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise _without_pyarrow(path) from None
    try:
        about = parquet.read_metadata(path)
        cells = about.num_rows * about.num_columns
        if cells > max(FREE_CELLS, path.stat().st_size):  # equal rows take no room in the file
            raise DataError(f"{path}: {cells:,} cells came, more than any table of its size; write it as CSV")
        table = parquet.read_table(path)
    except DataError:
        raise
    except (OSError, ValueError, LookupError, TypeError, NotImplementedError) as error:
        why = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: cannot be read as Parquet ({why}); is it the right file?") from error
    cells = [column.to_pylist() for column in table.columns]
    return list(table.column_names), [(n + 1, list(row)) for n, row in enumerate(zip(*cells, strict=True))]


def _time_column(path: Path, header: list[str], name: str | None, rows: Sequence[Any]) -> int:
    """The number of the column with the times, -1 where there is none."""
    if name is not None:
        return _column(path, header, name)
    for n, column in enumerate(header):
        if column.lower() in TIMES:
            return n
    return 0 if rows and not _is_number(rows[0][1][0]) and not _missing(rows[0][1][0]) else -1


def _column(path: Path, header: list[str], name: str) -> int:
    lower = [one.lower() for one in header]
    if name not in header and name.lower() not in lower:
        raise ConfigError(f"{path}: has no column {name!r}; it has {', '.join(header)[:300]}")
    return header.index(name) if name in header else lower.index(name.lower())


def _series(
    path: Path,
    name: str,
    rows: list[tuple[int, list[Any]]],
    place: int,
    picked: list[int],
    extra: list[int],
    header: list[str],
) -> Series:
    values = np.array([[_number(path, line, row[n], header[n]) for n in picked] for line, row in rows])
    known = np.array([[_number(path, line, row[n], header[n]) for n in extra] for line, row in rows])
    known = known.reshape(len(rows), len(extra))
    if place < 0:
        return Series(name, np.arange(len(rows)), values, known)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of a zone, which numpy would take for UTC
        times = np.array(list(_times(path, rows, place)), dtype="datetime64[s]")
    return _filled(Series(name, times, values, known))


def _times(path: Path, rows: list[tuple[int, list[Any]]], place: int) -> Iterator[np.datetime64]:
    last = None
    for line, row in rows:
        text = str(row[place]).strip()
        try:
            if not _YEAR.match(text):  # numpy also takes `now`, `nat`, and 20240131 for a year
                raise ValueError
            time = np.datetime64(text.replace("/", "-").replace(" ", "T").removesuffix("Z"), "s")
        except (ValueError, UserWarning):
            raise DataError(
                f"{path}:{line}: {text[:40]!r} is no time; write 2024-01-31, 2024-01-31 13:00 or 2024-01"
            ) from None
        if last is not None and time <= last:
            what = "stands twice" if time == last else f"comes after {last}"
            raise DataError(
                f"{path}:{line}: {text[:40]} {what}; sort the rows by time and keep each time once"
            )
        last = time
        yield time


def _filled(series: Series) -> Series:
    """With a row of NaN for each time that a regular series leaves out."""
    step = step_of(series.times)
    if not isinstance(step, np.timedelta64) or is_months(step) or not int(step.astype(int)):
        return series
    offsets = (series.times - series.times[0]).astype(np.int64)
    places, rest = np.divmod(offsets, int(step.astype(np.int64)))
    count = int(places[-1]) + 1
    if rest.any() or count == len(places) or count > 2 * len(places):
        return series  # irregular: taken as it is
    values = np.full((count, series.values.shape[1]), np.nan)
    known = np.full((count, series.known.shape[1]), np.nan)
    values[places], known[places] = series.values, series.known
    return Series(series.name, series.times[0] + step * np.arange(count), values, known)


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
        raise DataError(
            f"{path}:{line}: {str(cell)[:40]!r} in column {column[:40]} is no number; mend or leave it empty"
        ) from None
    if np.isinf(value):
        raise DataError(
            f"{path}:{line}: {str(cell)[:40]} in column {column[:40]} is infinite; mend or leave it empty"
        )
    return value
