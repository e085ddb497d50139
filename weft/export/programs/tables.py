"""Models that forecast the series of a table, with its calendar, covariates and other columns."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from weft.data.dialect import (
    MISSING,
    begin_of,
    columns_named,
    has_decimal_comma,
    iso,
    mark_of,
    order_of,
    plain_numbers,
)
from weft.data.values import filled, readable
from weft.export.programs.common import KINDS
from weft.export.programs.series import Scaled


class Series(NamedTuple):
    """A series of a table, from its first to its last measured row."""

    name: str
    times: np.ndarray  # [T + H] datetime64[s] of clocks, those to forecast too; row numbers without times
    texts: list[str]  # [T + H] times with their offsets from UTC
    values: np.ndarray  # [T, F]
    known: np.ndarray  # [T + A, G], those of the future too
    past: np.ndarray  # [T, P]


class TableForecaster(Scaled):
    """The next rows of every series of a CSV table."""

    whole = True  # reads its input at once, not line by line

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.known, self.past = about["known"], about["past"]

    def __call__(self, text: str) -> str:
        """The forecasts as `weft predict` writes them; rows without targets at the end are the future."""
        found = io.StringIO()
        columns = self.about["columns"] or self.about["targets"] or self.about["names"]
        header, rows, mark, comma = cells_of(text, columns)
        writer = csv.writer(found, delimiter=mark, lineterminator="\n")
        writer.writerow(["unique_id", "ds", "y"])
        for one, columns in self.series(header, rows):
            for column, name in enumerate(columns):
                if self.about["targets"] and name not in self.about["targets"]:
                    continue
                best = self.of(one, column, one.name or name)
                deviation = self.scale(one.name or name, one.values[:, column])[2]
                texts = shown(one.texts[len(one.values) - self.about["lookback"] :])
                for time, value in zip(texts[self.about["lookback"] :], best, strict=True):
                    number = readable(value, deviation)
                    writer.writerow([one.name or name, time, number.replace(".", ",") if comma else number])
        return found.getvalue().removesuffix("\n")

    def of(self, one: Series, column: int, name: str) -> np.ndarray:
        """[H] the next values of one column of a series."""
        past, horizon = self.about["lookback"], self.about["horizon"]
        raw = one.values[:, column]
        self.check(raw, f"series {name!r}: ")
        number, mean, std = self.scale(name, raw)
        values = filled((raw - mean) / std, season=self.about.get("fill", 1))
        given = {"values": values[None, -past:], "which": np.array([number])}
        rows = len(raw)
        ahead = one.known[rows - past : rows + horizon]
        if self.known and (len(ahead) < past + horizon or np.isnan(ahead[past:]).any()):
            raise ValueError(
                f"series {name!r}: expected {', '.join(self.known)} for the {horizon} rows to forecast; add "
                "rows with an empty target at the end of the table"
            )
        covariates = [np.nan_to_num(scaled(ahead, self.about["covariates"]))] if self.known else []
        if self.about["calendar"]:
            covariates.append(calendar(one.times[rows - past :]))
        if covariates:
            given["known"] = np.concatenate(covariates, 1)[None]
        beside = np.concatenate([one.values, one.past], 1) if self.about["columns"] else one.past
        if beside.shape[1]:
            columns = scaled(beside, self.about["channels"]).T
            given["seen"] = np.stack([filled(each) for each in columns], 1)[None, -past:]
        floats = {key: value if key == "which" else value.astype(np.float32) for key, value in given.items()}
        return self.best(floats, mean, std)

    def series(self, header: list[str], rows: list[list[str]]) -> Iterator[tuple[Series, list[str]]]:
        """The series of a table, and the names of their columns."""
        lower, about = [name.lower() for name in header], self.about
        plain = not about["id"] and not about["targets"] and {"unique_id", "ds", "y"} <= set(lower)
        ids = [self.place(header, name) for name in about["id"] or (["unique_id"] if plain else [])]
        time = lower.index("ds") if plain else self.time(header, rows)
        named = [self.place(header, name) for name in (*self.known, *self.past)]
        others = [name for n, name in enumerate(header) if n not in {*ids, time, *named}]
        columns = ["y"] if plain else about["columns"] or about["targets"] or others
        if about["columns"] and others != about["columns"]:
            raise ValueError(
                f"expected the columns {', '.join(columns)} in this order, got {', '.join(others)}"
            )
        places = [self.place(header, name) for name in columns]
        names = ["/".join(row[n] for n in ids) for row in rows]
        for name in dict.fromkeys(names):
            own = [row for row, other in zip(rows, names, strict=True) if other == name]
            table = np.array([[number_in(row[n]) for n in (*places, *named)] for row in own])
            yield (
                self.aligned(name, [row[time] for row in own] if time >= 0 else None, table, len(places)),
                columns,
            )

    def aligned(self, name: str, times: list[str] | None, table: np.ndarray, width: int) -> Series:
        """A series with a row for each period."""
        if times is not None:
            step = self.about["step"]
            if step is None:
                raise ValueError("expected rows without times, as in training; leave out that column")
            days = step.get("seconds", 86400) % 86400 == 0
            order = order_of("", list(enumerate(times, 2)), self.about.get("dates"))
            times = [iso(begin_of(time.strip()), order) for time in times]
            at, zone = parsed(times, self.about.get("base") or "", days=days)
            grid = every(at, step, self.about["horizon"])
            whole = np.full((len(grid), table.shape[1]), np.nan)
            whole[np.searchsorted(grid, at)] = table
            clocks = local(grid, zone, days=days)
            at = np.array([np.datetime64(time.replace(tzinfo=None), "s") for time in clocks])
            table, texts = whole, [time.isoformat(sep=" ") for time in clocks]
        else:
            at = np.arange(len(table) + self.about["horizon"])
            texts = [str(number) for number in at]
        values, known, past = np.split(table, [width, width + len(self.known)], 1)
        measured = np.flatnonzero(np.isfinite(values).any(1))
        end = int(measured[-1]) + 1 if len(measured) else len(values)
        if np.isnan(known[measured]).any():
            raise ValueError(f"expected numbers of {', '.join(self.known)} in each row with a target")
        rows = end + self.about["horizon"]
        return Series(name, at[:rows], texts[:rows], values[:end], known, past[:end])

    def time(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
        """The column of times; -1 if there is none."""
        if self.about["time"] is not None:
            return self.place(header, self.about["time"])
        usual = [n for n, name in enumerate(header) if name.lower() in self.about["times"]]
        return usual[0] if usual else -1 if is_number(rows[0][0]) else 0

    def place(self, header: Sequence[str], name: str) -> int:
        """The column of a name."""
        (found,) = columns_named("", header, [name])
        if found is None:
            raise ValueError(f"expected a column {name!r}, got {', '.join(header)[:300]}")
        return found


SAMPLE = 1000  # lines that tell the delimiter


class TableText(NamedTuple):
    """A table as text, and how it is written."""

    header: list[str]
    rows: list[list[str]]  # with numbers in Python's format
    mark: str
    comma: bool  # whether numbers have a decimal comma


def cells_of(text: str, columns: Sequence[str] = ()) -> TableText:
    """The header and the rows of a table; columns without names are 1, 2, ...

    A first row of numbers is the header if it has the names of these columns, other than 1, 2, ...; one of
    numbers behind a time is none.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if lines and re.fullmatch("(?i)sep=.", lines[0]):  # for Excel
        mark, lines = lines[0][-1], lines[1:]
    else:
        mark = mark_of(lines[:SAMPLE])
    rows = [row for row in csv.reader(lines, delimiter=mark) if row]
    first = [cell.strip() for cell in rows[0]] if rows else []
    wrong = next((n for n, row in enumerate(rows, 1) if len(row) != len(first)), None)
    if wrong is not None:
        raise ValueError(f"row {wrong}: expected {len(first)} cells, got {len(rows[wrong - 1])}")
    plain = [row for _, row in plain_numbers(list(enumerate(rows, 1)), mark).rows]
    dated = len(first) > 1 and first[0][:1].isdigit() and not is_number(first[0])
    titled = "1" not in columns[:1] and {*columns} <= {*first} and not dated
    if rows and not titled and all(map(is_number, plain[0][dated:])):
        first, rows = [str(n + 1) for n in range(len(first))], [[], *rows]
    if len(rows) < 2:
        raise ValueError("expected a header and rows of numbers, got no row")
    plain = [row for _, row in plain_numbers(list(enumerate(rows[1:], 2)), mark).rows]
    return TableText(first, plain, mark, has_decimal_comma(rows[1:], mark))


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, or nothing."""
    try:
        number_in(cell)
    except ValueError:
        return False
    return True


def number_in(cell: str) -> float:
    """The number in a cell; nan if there is none."""
    return float("nan") if cell.strip().lower() in MISSING else float(cell)


def scaled(columns: np.ndarray, scale: dict[str, list[float]]) -> np.ndarray:
    """Columns [T, K], scaled as in training."""
    found: np.ndarray = (columns - np.array(scale["mean"])) / np.array(scale["std"])
    return found


def calendar(times: np.ndarray) -> np.ndarray:
    """[T, 4] the hour, the weekday, the day of the month and the month, from -0.5 to 0.5."""
    days, months = times.astype("datetime64[D]"), times.astype("datetime64[M]")
    parts = [
        (times - days).astype(np.int64) / 86400,
        (days.astype(np.int64) + 3) % 7 / 6,
        (days - months).astype(np.int64) / 30,
        months.astype(np.int64) % 12 / 11,
    ]
    return np.stack(parts, 1) - 0.5


def shown(texts: Sequence[str]) -> list[str]:
    """Times in one format: as dates if none has a time of day."""
    days = all(text.endswith(" 00:00:00") for text in texts)
    return [text.removesuffix(" 00:00:00") if days else text for text in texts]


QUARTER = re.compile(r"(\d{4})-?Q([1-4])", re.IGNORECASE)


def parsed(texts: Sequence[str], base: str, *, days: bool) -> tuple[np.ndarray, str]:
    """Increasing times [T] from texts such as 2024-01-31 13:00, and their zone: an offset, a name or ""."""
    found, zones = [], set()
    for text in texts:
        plain = text.strip().replace("/", "-")
        if quarter := QUARTER.fullmatch(plain):
            plain = f"{quarter[1]}-{3 * int(quarter[2]) - 2:02d}"
        plain += {4: "-01-01", 7: "-01"}.get(len(plain), "")
        try:
            time = datetime.fromisoformat(re.sub(r"(?<!\s)\s+(?=[+-]\d\d:?\d\d$|Z$)", "", plain))
        except ValueError:
            raise ValueError(f"{text[:40]!r} is not a time; write 2024-01-31 or 2024-01-31 13:00") from None
        if base and time.utcoffset() is None and (time.hour or time.minute):
            raise ValueError(f"expected an offset from UTC as in training ({base}), got {text[:40]}")
        if base and time.utcoffset() is not None:
            time = time.astimezone(zone_of(base) if days or "/" not in base else UTC)
        zones.add(base or time.isoformat()[len(time.replace(tzinfo=None).isoformat()) :])
        found.append(np.datetime64(time.replace(tzinfo=None, microsecond=0), "s"))
    times = np.array(found)
    if len(zones) > 1:
        raise ValueError("expected times with one offset from UTC, got several; write them in UTC")
    if len(wrong := np.flatnonzero(np.diff(times).astype(np.int64) <= 0)):
        after, before = texts[wrong[0] + 1], texts[wrong[0]]
        raise ValueError(f"{after[:40]} comes after {before[:40]}; sort the rows and keep each time once")
    return times, zones.pop()


def zone_of(name: str) -> tzinfo:
    """A zone by its name: UTC, +02:00 or Europe/Zagreb."""
    if "/" in name:
        return ZoneInfo(name)
    return datetime.fromisoformat(f"2000-01-01T00{name.replace('UTC', '+00:00')}").tzinfo or UTC


def local(times: np.ndarray, zone: str, *, days: bool) -> list[datetime]:
    """The same times as clocks show them, in the zone if there is one."""
    plain = [datetime.fromisoformat(str(time)) for time in times]
    if not zone:
        return plain
    if days or "/" not in zone:
        return [time.replace(tzinfo=zone_of(zone)) for time in plain]
    return [time.replace(tzinfo=UTC).astimezone(zone_of(zone)) for time in plain]


def every(times: np.ndarray, step: dict[str, int], more: int) -> np.ndarray:
    """All times of a series [T], increasing, those without a row too, and `more` times after the last one."""
    first, last = times[0], times[-1]
    day = first.astype("datetime64[D]")
    if "seconds" in step:
        count = int((last - first).astype(np.int64)) // step["seconds"]
    elif "business" in step:
        count = int(np.busday_count(day, last.astype("datetime64[D]")))
    else:
        count = (
            int((last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(int)) // step["months"]
        )
    if count > 21 * len(times) + 100:
        raise ValueError(f"expected regular times, got {len(times)} rows from {first} to {last}")
    places = np.arange(count + 1 + more)
    if "seconds" in step:
        grid = first + places * np.timedelta64(step["seconds"], "s")
    elif "business" in step:
        grid = np.busday_offset(day, places, roll="forward") + (first - day)
    else:
        months = times.astype("datetime64[M]")
        ends = (times.astype("datetime64[D]") == _last(months)).all()
        begins = first.astype("datetime64[M]") + places * step["months"]
        latest = (times.astype("datetime64[D]") - months.astype("datetime64[D]")).max()  # February has less
        same = begins.astype("datetime64[D]") + latest
        grid = (_last(begins) if ends else np.minimum(same, _last(begins))) + (first - day)
    grid = grid.astype("datetime64[s]")
    if len(odd := times[~np.isin(times, grid[: count + 1])]):
        raise ValueError(f"expected regular times as in training, got {odd[0]}; correct it")
    return grid


def _last(months: np.ndarray) -> np.ndarray:
    return (months + 1).astype("datetime64[D]") - 1


KINDS |= {"tables": TableForecaster}
