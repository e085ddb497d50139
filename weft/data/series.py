"""Read time series from tables: wide (one column per series) or long (unique_id, ds, y).

Missing values become NaN and missing periods become rows of NaN. Rows at the end without values are the
future, with known covariates only. Errors for irregular or duplicate times, infinite values and
cells that are not numbers name file and line, where pandas would make the whole column text.
Read next: times.py and calendar.py, times; future.py, covariates known ahead; windows.py, the model's inputs.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.data import periods
from weft.data.calendar import FEW_TIMES, aligned, alike, incomplete, infer, resampled, step_of
from weft.data.dialect import MISSING, Order, columns_named, order_of, plain_numbers
from weft.data.guess import HALF_HOUR, PERIODS, TIMES, has_header, holds_values
from weft.data.held import name_of
from weft.data.periods import Group
from weft.data.tables import NAMED, TableFile, is_number
from weft.data.times import TimeColumn, are_times, in_order, read_times, shown
from weft.errors import ConfigError, DataError, caution, library
from weft.wording import close_name, plural

if TYPE_CHECKING:
    import pandas as pd

EACH = "each"  # the frequency of series that each have their own

TRUTH = {"true": 1.0, "false": 0.0}
LONG = ("unique_id", "ds", "y")


MOST_COLUMNS = 100_000
"""Maximum columns of a CSV table; each is a series with its own name, scale and windows."""


MOST_GAPPED = 50
"""Columns with gaps of a wide table whose frequency is compared with that of the table."""


class TimeSeries(NamedTuple):
    """One or more values measured at the same times, from the first measured row to the last.

    Example:
        >>> import numpy as np
        >>> none = np.zeros((3, 0))  # no covariates
        >>> values = np.array([[1.0], [2.0], [4.0]])  # [T, F]
        >>> series = TimeSeries("sales", np.arange(3), values, none, none, none[:0], "")
        >>> series.values.shape
        (3, 1)
    """

    name: str
    times: (
        "pd.DatetimeIndex | np.ndarray"  # [T] of the table's zone; int64 steps or row numbers without dates
    )
    values: np.ndarray  # [T, F] float64, NaN where missing
    known: np.ndarray  # [T, G] float64, covariates that are known ahead; numbers of classes
    past: np.ndarray  # [T, P] float64, covariates with unknown future
    ahead: np.ndarray  # [A, G] float64, known covariates of the periods after the last
    frequency: str  # a pandas alias; "" without dates or with a single one


class Columns(NamedTuple):
    """The roles of a table's columns, and the frequency of its rows."""

    time: Sequence[str] = ()  # several make a time together; if none, it is found by name
    targets: Sequence[str] = ()  # to forecast; if empty, all other columns of a wide table
    known: Sequence[str] = ()  # covariates that are known ahead, such as holidays
    past: Sequence[str] = ()  # covariates with unknown future, such as the weather
    static: Sequence[str] = ()  # covariates with one value for each series
    categories: Sequence[str] = ()  # those of the covariates that hold classes instead of numbers
    classes: Mapping[str, Sequence[str]] = {}  # of each of them, in a run; a training table tells its own
    frequency: str | None = None  # a pandas alias; None infers one for all series, EACH one for each series
    resample: str | None = None  # mean, sum, first, last, min or max of a period's rows; None: regular rows
    id: Sequence[str] = ()  # columns that together name a row's series, in a table with one column of values
    dates: Order | None = None  # whether dates begin with the day or the month; None infers it
    zone: str | None = None  # of times without an offset from UTC; None if they have none
    base: str | None = None  # the run's base of times (times.py); None if the table decides it
    trained: Sequence[str] = ()  # columns that the run forecasts in a wide table; if empty, all
    inferred: bool = False  # whether the frequency is that of a training table, which no one has named
    most: int = 0  # maximum number of series; 0 for any number
    own: bool = False  # whether the file is what a run trains on, of which nothing is said here
    absent: str | None = None
    """Periods without a row when rows are aggregated: "zero", "missing" or None, zero for sums.

    "older" is missing, and keeps an incomplete last period, as runs of before were trained.
    """

    @property
    def ahead(self) -> tuple[str, ...]:
        """The covariates whose future is known, static ones last."""
        return *self.known, *self.static


class SeriesTable(NamedTuple):
    """The contents of a file.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "sales.csv"
        ...     _ = path.write_text(chr(10).join(["date,sales", "2026-01-01,3", "2026-01-02,5"]))
        ...     found = read_series(path).series
        >>> found[0].values.tolist()
        [[3.0], [5.0]]
    """

    series: list[TimeSeries]
    columns: tuple[str, ...]  # F names
    known: tuple[str, ...]  # G names
    past: tuple[str, ...]  # P names
    long: bool
    base: str | None = None  # of the times: a zone, STEPS, or "" as written; None without times
    notes: tuple[str, ...] = ()  # remarks for the user about missing periods
    inserted: tuple[int, ...] = ()  # missing periods of each series
    assumed: tuple[str, ...] = ()  # how its times and columns were read, where that was a choice
    classes: Mapping[str, Sequence[str]] = {}  # of covariates


def read_series(path: str | Path, which: Columns = Columns()) -> SeriesTable:  # noqa: B008  it never changes
    r"""Read all series of a file.

    Args:
        path: a table with or without a header, see data/tables.py.
        which: columns.

    Raises:
        DataError: a line cannot be read; names file and line.
        ConfigError: unknown column or frequency, or pandas is not installed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "series.csv")
        ...     _ = path.write_text("date,load\n2026-01-01,3\n2026-01-02,5\n2026-01-03,4\n")
        ...     [one.values.shape for one in read_series(path).series]  # [T, F]
        [(3, 1)]
    """
    path = Path(path)
    library("pandas", "pandas", str(path))
    if path.suffix.lower() == ".tsf":
        return _in_rows(path, periods.read_tsf(path), which)
    header, rows, chosen = read_rows(path, which.time)
    if not which.targets and (places := periods.of_days(header, rows)):
        header, rows, which = _of_days(path, header, rows, places, which)
    elif not which.targets and (places := periods.of_series(header, rows)):
        ids = columns_of(path, header, which.id)
        groups, base, said = periods.series_in_rows(path, header, rows, places, ids)
        return _in_rows(path, groups, which, base, (*chosen, said))
    return _in_columns(path, header, rows, chosen, which)


def _in_columns(
    path: Path, header: list[str], rows: periods.Rows, chosen: Sequence[str], which: Columns
) -> SeriesTable:
    """The series of a wide or a long table."""
    if not which.id and not which.targets and {name.lower() for name in header} >= set(LONG):
        which = which._replace(id=LONG[:1], time=LONG[1:2], targets=LONG[2:])
    ids = columns_of(path, header, which.id)
    place = time_column(path, header, which.time, rows)
    inputs = {*columns_of(path, header, (*which.ahead, *which.past)), place, *ids}
    others = tuple(name for n, name in enumerate(header) if n not in inputs)
    columns = tuple(which.targets) or _trained(path, others, which.trained) or others
    if not others:
        raise _nothing(path, header, which, columns)
    if not rows:
        raise DataError("expected a header and rows of numbers, got no row", path=path)
    kinds = [columns_of(path, header, names) for names in (columns, which.ahead, which.past)]
    _check_roles(path, columns, which)
    classes = coded_rows(path, header, rows, which)
    times = None if place < 0 else column_times(path, rows, place, which)
    assumed = [*chosen, *(times.notes if times is not None else ())]
    ends = _ends_of(path, rows, times, kinds[0], which)
    assumed += [ends.note] if ends.note else []
    if which.trained and (unused := [one for one in others if one not in columns]):
        assumed.append(f"{path}: not forecast in training, left out: {', '.join(unused)[:200]}")
    groups = (
        Group(name, [rows[n] for n in at], None if times is None else times.times[at])
        for name, at in groups_of(rows, ids).items()
    )
    table = SeriesTable([], columns, which.ahead, tuple(which.past), bool(ids), classes=classes)
    table = table._replace(base=None if times is None else times.zone, assumed=tuple(assumed))
    return _gathered(path, groups, table, kinds, header, which, ends)


def _of_days(
    path: Path, header: Sequence[str], rows: periods.Rows, places: Sequence[int], which: Columns
) -> tuple[list[str], Sequence[tuple[int, list[str]]], Columns]:
    """The rows of a table with a column for each time of a day, and their columns."""
    some = rows[: periods.FEW]
    days = columns_of(path, header, which.time[:1])
    others = [n for n in range(len(header)) if n not in places]
    days = days or [n for n in others if are_times([row[n] for _, row in some])]
    if not days:
        raise ConfigError(
            f"{path}: expected a column of days beside {header[places[0]]} to {header[places[-1]]}, got "
            f"{', '.join(header[n] for n in others)[:200] or 'none'}; name it (data.time, --time)"
        )
    ids = [header[n] for n in others if n != days[0] and not all(is_number(row[n]) for _, row in some)]
    header, rows = periods.long_days(header, rows, places, days[0])
    return header, rows, which._replace(time=header[:1], id=which.id or ids, targets=("y",))


def _in_rows(
    path: Path, groups: Iterable[Group], which: Columns, base: str = "", said: Sequence[str] = ()
) -> SeriesTable:
    """The series of a file that has each of them in one row."""
    if named := [*which.ahead, *which.past]:
        raise ConfigError(
            f"{path}: expected a row for each time beside {named[0]}, got a row for each series; give a long "
            "table (unique_id, ds, y and the covariates)"
        )
    table = SeriesTable([], ("y",), (), (), long=True, base=base, assumed=tuple(said))
    return _gathered(path, groups, table, [[0], [], []], ["y"], which, SumEnds())


def _gathered(
    path: Path,
    groups: Iterable[Group],
    table: SeriesTable,
    kinds: Sequence[list[int]],
    header: list[str],
    which: Columns,
    ends: "SumEnds",
) -> SeriesTable:
    """The table with the series of the groups."""
    series, notes, inserted, unsorted = [], list[str](), list[int](), False
    if which.most and (count := len(groups := list(groups))) > which.most:
        raise DataError(f"expected at most {which.most} series, got {count:,}; send fewer", path=path)
    for group in groups:
        one, note, count, moved = _series(path, group, kinds, header, which, ends)
        series.append(one)
        inserted.append(count)
        unsorted = unsorted or moved
        notes += [note] if note else []
    if which.frequency is None and table.base is not None:
        _check_alike(path, series)
    if unsorted and not which.own:
        caution(f"{name_of(path)}: the rows were sorted by time")
    table = table._replace(series=series, notes=tuple(notes), inserted=tuple(inserted))
    if which.frequency is None and (slower := slower_columns(table)):
        often = ", of ".join(f"{name} come at {often}" for name, often in slower.items())
        said = f"{path}: the values of {often}, other columns at {series[0].frequency}; pass "
        said += f"--past {','.join(slower)!r} to forecast only the others, or give a table for each, or "
        said += f"--frequency {next(iter(slower.values()))} --resample mean (or sum) to gather all of them"
        table = table._replace(assumed=(*table.assumed, said))
    return table


def _check_alike(path: Path, series: Sequence[TimeSeries]) -> None:
    """Check that all series of a table have one frequency: a horizon is the same time for all of them."""
    kinds: dict[str, list[TimeSeries]] = {}
    for one in series:
        if len(one.times) >= FEW_TIMES:
            often = one.frequency or f"steps of {step_of(one.times)}"
            kind = next(
                (name for name in kinds if name == often or (one.frequency and alike(name, often))), often
            )
            kinds.setdefault(kind, []).append(one)
    if len(kinds) < 2:
        return
    usual, *others = sorted(kinds, key=lambda name: -len(kinds[name]))
    said = []
    for name in others:
        called = [one.name for one in kinds[name]]
        said.append(f"{', '.join(map(repr, called[:3]))}{', ...' * (len(called) > 3)} at {name}")
    common = (
        f"--frequency {usual} to read all of them so, with missing periods (and --resample mean, or sum, "
    )
    common += "to gather rows into longer ones), or "
    raise DataError(
        f"expected one frequency for all series, got {usual} and {'; '.join(said)[:300]}; give a table for "
        f"each frequency, or {common if series[0].frequency else ''}--frequency {EACH} (data.frequency) to "
        "forecast rows, however far apart",
        path=path,
    )


def slower_columns(table: SeriesTable) -> dict[str, str]:
    """The columns of a wide table that are measured less often, as weekly among daily ones, and how often."""
    one, found = table.series[0], dict[str, str]()
    gapped = [n for n, values in enumerate(one.values.T) if np.isnan(values).any()][:MOST_GAPPED]
    for n in gapped if one.frequency and not table.long and len(table.columns) > 1 else ():
        there = np.flatnonzero(np.isfinite(one.values[:, n]))
        often = infer(one.times[there]) if len(there) >= FEW_TIMES else ""
        if often not in ("", one.frequency) and not alike(often, one.frequency):
            found[table.columns[n]] = often
    return found if len(found) < len(table.columns) else {}


def _nothing(path: Path, header: Sequence[str], which: Columns, columns: Sequence[str]) -> DataError:
    """That no column is left to forecast."""
    wanted = ", ".join(columns)[:100] or "a column to forecast"
    why = f"expected {wanted}, got only {', '.join(header)[:200]}"
    what = "give the table of the past, and this one with --future" if which.known else "add it"
    what += ", and commas, semicolons or tabs between the columns" if len(header) == 1 else ""
    return DataError(f"{why}; {what}", path=path)


def _trained(path: Path, others: Sequence[str], trained: Sequence[str]) -> tuple[str, ...]:
    """The columns of a run that a wide table has."""
    names = {name.lower(): name for name in reversed(others)}
    found = tuple(name for name in trained if name.lower() in names)
    missing = [name for name in trained if name not in found]
    extra = [name for name in others if name.lower() not in {one.lower() for one in trained}]
    if missing and extra:
        near = close_name(missing[0], extra)
        hint = f" ({near!r} is close)" if near else ""
        raise ConfigError(
            f"{path}: expected the column {missing[0]!r}, as in training, got "
            f"{', '.join(others)[:200]}{hint}; rename it"
        )
    return found


def column_times(path: Path, rows: Sequence[tuple[int, list[str]]], place: int, which: Columns) -> TimeColumn:
    """The times of a table, whose column of times is at `place`."""
    cells = [(line, row[place]) for line, row in rows]
    order = order_of(path, cells, which.dates)
    return read_times(path, cells, order, base=which.base, zone=which.zone)


def groups_of(rows: Sequence[tuple[int, list[str]]], ids: Sequence[int]) -> dict[str, list[int]]:
    """The places of each series' rows, by its name: the cells of the columns `ids`."""
    groups: dict[str, list[int]] = {}
    for n, (_, row) in enumerate(rows):
        groups.setdefault("/".join(row[place].strip() for place in ids), []).append(n)
    return groups


def joined_time(parts: Sequence[tuple[str, str]]) -> str:
    """A time from several cells, given with the names of their columns.

    Example:
        >>> joined_time([("year", "2024"), ("week", "5")]), joined_time([("day", "20240131"), ("hour", "7")])
        ('2024-W05', '20240131 07:00')
        >>> joined_time([("year", "2024"), ("month", "May"), ("day", "3")])
        '3 May 2024'
    """
    text = parts[0][1]
    for name, cell in parts[1:]:
        letter = next((letter for letter, form in PERIODS.items() if form.match(name)), "")
        if HALF_HOUR.fullmatch(name) and cell.isdigit() and len(text) > 4:
            text += f" {(int(cell) - 1) // 2:02d}:{(int(cell) - 1) % 2 * 30:02d}"
        elif letter and cell.isdigit():
            text += f"-{letter}{cell.zfill(2 if letter == 'W' else 1)}"
        elif cell.isalpha() or text[:1].isalpha():  # names of months
            text = f"{cell} {text}"
        elif not cell.isdigit() or not text[-1:].isdigit():
            text += f" {cell}"
        elif re.fullmatch(r"\d{4}(-\d\d?)?", text):
            text += f"-{cell}"
        else:  # a time of day
            digits = cell.zfill(2 if len(cell) < 3 else 4 if len(cell) < 5 else 6).ljust(4, "0")
            text += " " + ":".join(digits[n : n + 2] for n in range(0, len(digits), 2))
    return text


class TableRows(NamedTuple):
    """The cells of a table."""

    header: list[str]  # 1, 2, ... if it has none
    rows: Sequence[tuple[int, list[str]]]  # number and cells
    notes: Sequence[str] = ()  # what was chosen, such as a sheet


def read_rows(path: Path, time: Sequence[str] = ()) -> TableRows:
    """The cells of a table."""
    table = _rows(path)
    if len(time) < 2:
        return table
    header, rows, notes = table
    first, *more = columns_of(path, header, time)
    kept = [n for n in range(len(header)) if n not in more]
    joined = []
    for line, row in rows:
        row[first] = joined_time([(header[n], row[n].strip()) for n in (first, *more)])
        joined.append((line, [row[n] for n in kept]))
    return TableRows([header[n] for n in kept], joined, notes)


def _rows(path: Path) -> TableRows:
    table = TableFile(path)
    if (count := len(table.first)) > MOST_COLUMNS:
        raise DataError(
            f"expected at most {MOST_COLUMNS:,} columns, got {count:,}; give fewer, or one row for "
            "each series and time (unique_id, ds, y)",
            path=path,
        )
    read = [(row.number, row.cells) for row in table if any(map(str.strip, row.cells))]
    if not read:
        raise DataError("expected a header and rows of numbers, got rows without text", path=path)
    names = table.names()
    if head := _more_headers(read):
        names = [read[head][1][0].strip(), *_joined_names([row for _, row in read[:head]])]
        read = [(read[0][0], names), *read[head + 1 :]]
    kept = [n for n, name in enumerate(names[:count]) if name or any(row[n].strip() for _, row in read)]
    if len(kept) < count:  # columns without text, as between the tables of a spreadsheet
        read = [(line, [row[n] for n in kept]) for line, row in read]
        names = [names[n] for n in kept]
    first = [cell.strip() for cell in read[0][1]]
    valued = table.kind not in NAMED and holds_values(first, table.mark)
    headed = not valued or has_header(first, [row for _, row in read[1:]], table.mark)
    rows, notes = plain_numbers(read[headed:], table.mark)
    names = names if headed else [str(n + 1) for n in range(len(names))]
    said = [f"{path}: in column {names[n][:40]} {note}" for n, note in notes]
    if valued:
        what = "the names of columns" if headed else f"values of columns called 1 to {len(names)}"
        shown = ", ".join(first[:3]) + ", ..." * (len(first) > 3)
        said.append(f"{path}: the first row ({shown[:60]}) is read as {what}")
    return TableRows(names, list(rows), [*table.notes, *said])


def _more_headers(rows: Sequence[tuple[int, list[str]]]) -> int:
    """The row, among the first, that only names the index: pandas writes it below several header rows."""
    for number, (_, (first, *others)) in enumerate(rows[1:4], 1):
        if first.strip() and not any(map(str.isdigit, first)) and others and not any(map(str.strip, others)):
            return number
    return 0


def _joined_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """The names of columns from several header rows, without rows whose cells are all the same."""
    told = [row[1:] for row in rows if len(set(row[1:])) > 1] or [rows[0][1:]]
    return [" ".join(dict.fromkeys(cell.strip() for cell in cells)) for cells in zip(*told, strict=True)]


def time_column(path: Path, header: list[str], names: Sequence[str], rows: Sequence[Any]) -> int:
    """The index of the column of times, -1 if there is none."""
    if names:
        return columns_of(path, header, names[:1])[0]
    for n, column in enumerate(header):
        if column.lower() in TIMES:
            return n
    return 0 if rows and not is_number(rows[0][1][0]) and not _missing(rows[0][1][0]) else -1


def columns_of(path: Path, header: Sequence[str], names: Sequence[str]) -> list[int]:
    """The indices of several columns, see `columns_named`."""
    found: list[int] = []
    for name, place in zip(names, columns_named(path, header, names), strict=True):
        if place is None:
            near = close_name(name, header)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ConfigError(f"{path}: no such column {name!r}; it has {', '.join(header[:30])[:300]}{hint}")
        found.append(place)
    return found


def coded_rows(path: Path, header: Sequence[str], rows: periods.Rows, which: Columns) -> dict[str, list[str]]:
    """Write numbers in place of the classes in the columns of categories; return the classes."""
    found = {}
    for name, place in zip(which.categories, columns_of(path, header, which.categories), strict=True):
        cells = [row[place] for _, row in rows]
        found[name] = list(which.classes.get(name, ())) or sorted({*map(class_of, cells)} - {""})
        numbers = {cell: str(n) for n, cell in enumerate(found[name])}
        for line, row in rows:
            if (one := class_of(row[place])) and one not in numbers:
                raise DataError(unknown_class(name, one, found[name]), path=path, line=line)
            row[place] = numbers.get(one, "")
    return found


def class_of(cell: Any) -> str:
    """The class in a cell, where 1 and 1.0 are the same; "" if there is none."""
    text = str(cell).strip()
    return "" if text.lower() == "nan" else f"{float(text):g}" if is_number(text) else text


def unknown_class(name: str, cell: str, classes: Sequence[str]) -> str:
    """Why a class cannot be read."""
    why = (
        f"expected one of {', '.join(classes)[:200]} in column {name[:40]}, as in training, got {cell[:40]!r}"
    )
    return f"{why}; correct it, or train again with it"


def _check_roles(path: Path, columns: Sequence[str], which: Columns) -> None:
    """Check that a long table has one column of values, and that no column has two roles."""
    if which.id and len(columns) != 1:
        raise ConfigError(
            f"{path}: expected one column of values beside the series' names ({', '.join(which.id)}), got "
            f"{', '.join(columns)[:200]}; name it with --target (data.targets)"
        )
    names = [*columns, *which.ahead, *which.past]
    if other := [name for name in which.categories if name not in names[len(columns) :]]:
        raise ConfigError(
            f"category {other[0]!r}: expected its name under known, past or static too, got none"
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ConfigError(
            f"column {twice[0]!r} is named twice; name it once under targets, known, past or static"
        )


class SumEnds(NamedTuple):
    """Where the sums of a table end."""

    last: Any = None  # time up to which periods without a row are 0
    cut: Any = None  # begin of a last period that is left out
    begin: Any = None  # end of a first one
    note: str = ""


def _series(
    path: Path,
    group: Group,
    kinds: Sequence[list[int]],
    header: list[str],
    which: Columns,
    sums: SumEnds,
) -> tuple[TimeSeries, str, int, bool]:
    """A series, a note about its missing periods, their number, and whether its rows were sorted."""
    name, rows, times = group
    table = np.concatenate([numbers_of(path, rows, kind, header) for kind in kinds], 1)  # [T, F + G + P]
    ends = np.cumsum([len(kind) for kind in kinds])
    fixed = slice(ends[1] - len(which.static), ends[1])
    table[:, fixed] = _static(path, name, rows, table[:, fixed], which.static)
    measured = np.isfinite(table[:, : ends[0]]).any(1)
    _check_known(path, rows, table[:, ends[0] : ends[1]], measured, [header[n] for n in kinds[1]])
    frequency, note, missing, moved = "", "", np.array([], int), False
    called = f"{path}: series {name!r}" if name else f"{path}"
    if times is None:
        times = np.arange(len(rows))
    else:
        how = [which.resample or ""] * int(ends[0])
        how += ["last" if one in which.categories else "mean" for one in (*which.ahead, *which.past)]
        lines = [line for line, _ in rows]
        again = which.resample is not None
        times, order, moved = in_order(path, name, lines, times, zone=which.zone, again=again)
        table = table[order]
        if which.resample is not None and which.frequency is not None:
            end, cut, begin = (_like(one, times, which.zone) for one in sums[:3])
            if cut is not None:
                table[times >= cut, : ends[0]] = np.nan
            if begin is not None and (kept := times >= begin).any():
                times, table = times[kept], table[kept]
            times, table = resampled(times, table, which.frequency, how, end)
        asked = None if which.frequency == EACH else which.frequency
        grid = aligned(called, times, asked, trained=which.inferred)
        if len(missing := np.setdiff1d(np.arange(len(grid.times)), grid.places)):
            note = _note(called, grid.frequency, grid.times[missing])
        whole = np.full((len(grid.times), table.shape[1]), np.nan)
        whole[grid.places] = table
        whole[:, fixed] = table[:1, fixed]
        times, table, frequency = grid.times, whole, grid.frequency
    values, known, past = np.split(table, ends[:2], 1)
    found = np.flatnonzero(np.isfinite(values).any(1))
    end = int(found[-1]) + 1 if len(found) else len(values)
    parts = (times[:end], values[:end], known[:end], past[:end], known[end:])
    return TimeSeries(name, *parts, frequency), note, int((missing < end).sum()), moved


def _ends_of(
    path: Path,
    rows: Sequence[tuple[int, list[str]]],
    column: TimeColumn | None,
    targets: Sequence[int],
    which: Columns,
) -> SumEnds:
    """The last time of a ledger with a value, without an incomplete period."""
    if column is None or which.resample != "sum" or which.absent == "older":
        return SumEnds()
    often = str(which.frequency)
    measured = column.times[[any(not _missing(row[n]) for n in targets) for _, row in rows]]
    begin, cut = incomplete(measured, often) if len(measured) else (None, None)
    said = []
    for time, which_one, verb in ((begin, "first", "begin"), (cut, "last", "end")):
        if time is not None:
            when = measured.min() if time is begin else measured.max()
            what = f"the {which_one} period of the frequency {often} is left out"
            said.append(f"{what}, as its rows {verb} on {shown(when)}")
    measured = measured[measured < cut] if cut is not None else measured
    zero = which.absent != "missing" and len(measured) > 0
    said += ["a period without a row is 0 (data.absent: missing changes it)"] if zero else []
    note = f"{path}: {'; '.join(said)}" if said else ""
    return SumEnds(measured.max() if zero else None, cut, begin, note)


def _like(time: Any, times: "pd.DatetimeIndex", zone: str | None) -> Any:
    """A time, in the zone of others."""
    if time is None or times.tz is None or time.tz is not None:
        return time
    return time.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")


def _check_known(
    path: Path,
    rows: Sequence[tuple[int, list[str]]],
    known: np.ndarray,
    measured: np.ndarray,
    names: list[str],
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


def _static(
    path: Path, series: str, rows: periods.Rows, values: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """[S] the values that a series has everywhere."""
    for column, name in zip(values.T, names, strict=True):
        found = column[np.isfinite(column)]
        if not len(found) or (found != found[0]).any():
            at = int(np.argmax(column != found[0])) if len(found) else 0
            what = "several" if len(found) else "none"
            why = f"expected one value of {name[:40]} in series {series!r}, got {what}; correct it, or name "
            why += "the column under known or past instead of static"
            raise DataError(why, path=path, line=rows[at][0])
        column[:] = found[0]
    return values[0]


def _note(called: str, frequency: str, missing: Any) -> str:
    several = f" to {shown(missing[-1])}" if len(missing) > 1 else ""
    often = f" of the frequency {frequency}" if frequency else ""
    return (
        f"{called}: inserted {plural(len(missing), 'missing period')}{often} without "
        f"values ({shown(missing[0])}{several})"
    )


def numbers_of(
    path: Path, rows: Sequence[tuple[int, list[str]]], kind: list[int], header: list[str]
) -> np.ndarray:
    """[T, K] numbers of some columns, NaN where missing."""
    found = [[_number(path, line, row[n], header[n]) for n in kind] for line, row in rows]
    return np.array(found, dtype=np.float64).reshape(len(rows), len(kind))


def _missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _number(path: Path, line: int, cell: str, column: str) -> float:
    if _missing(cell):
        return float("nan")
    try:
        value = float(cell)
    except ValueError:
        if (truth := TRUTH.get(cell.strip().lower())) is not None:
            return truth
        why = f"{cell[:40]!r} in column {column[:40]} is not a number; correct it, leave it empty, name the "
        why += (
            "columns to forecast (data.targets, --target), or name a covariate of classes under categories "
        )
        why += "too (data.categories, --category)"
        raise DataError(why, path=path, line=line) from None
    if np.isinf(value):
        why = f"{cell[:40]} in column {column[:40]} is infinite; correct it or leave it empty"
        raise DataError(why, path=path, line=line)
    return value
