"""Read a column of times: pandas parses it once for the whole table and converts it to one time base.

The base of a run is one of: "" for times without offsets from UTC, as written; STEPS for whole numbers; or a
time zone (UTC, +02:00, Europe/Zagreb). The training table decides it, and every other table is converted.
Read next: calendar.py, the frequency of a series.
"""

import re
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.data.dialect import Order, iso
from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

STEPS = "steps"

_ZONES = (
    "Europe/London", "Europe/Berlin", "Europe/Athens", "America/New_York", "America/Chicago",
    "America/Denver", "America/Los_Angeles", "Australia/Sydney",
)  # fmt: skip
"""Tried first where offsets fit several zones; what such zones have in common is all that matters."""

_OFFSET = re.compile(r"(.*\d[T ]\d.*?)\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?:\[[\w/+-]+\])?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?([1-7]))?", re.IGNORECASE)
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])|Q([1-4])[- /]?(\d{4})", re.IGNORECASE)
_WORDS = re.compile(r"(?i).*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).*\d")
_FORMATS = ("ISO8601", "%G-W%V-%u", "%Y-%m-%d %I:%M %p", "%Y-%m-%d %I:%M:%S %p", "%b-%y", "%d-%b-%y")
_DIGITS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""The format of a date by its number of digits."""

_UNIX = {10: "s", 13: "ms", 16: "us", 19: "ns"}
"""The unit of a Unix time by its number of digits."""


class TimeColumn(NamedTuple):
    """The times of a table, in its order."""

    times: "pd.DatetimeIndex | np.ndarray"  # [T] in the zone, or int64 steps
    zone: str
    notes: tuple[str, ...]  # what was assumed or converted


class _Clocks(NamedTuple):
    """Parsed texts."""

    shown: "pd.DatetimeIndex"  # [T] without zone, NaT for what is no time
    offsets: list[timedelta | None]  # [T]
    note: str = ""


def read_times(
    path: str | Path,
    rows: Sequence[tuple[int, Any]],
    order: Order = "day",
    *,
    base: str | None = None,
    zone: str | None = None,
) -> TimeColumn:
    """The times in the cells of a column.

    Args:
        path: of the table, for errors.
        rows: line number and cell.
        order: of ambiguous dates.
        base: of the run; None if this table decides it.
        zone: of times without an offset, if the user names it (in_order applies it).

    Raises:
        DataError: a cell is not a time, or does not fit the base; names the line.
    """
    import pandas as pd

    codes, found = pd.factorize(np.array([_text(cell) for _, cell in rows], dtype=object))
    texts = [str(text) for text in found]
    if steps := _steps(texts, base):
        said = () if base == STEPS else (f"{path}: times such as {texts[0]} are steps, not dates",)
        return TimeColumn(np.array(steps, np.int64)[codes], STEPS, said)
    if base == STEPS:
        line, cell = next(row for row in rows if not _NUMBER.fullmatch(_text(row[1])))
        why = f"expected whole numbers such as 17, as in training, got {str(cell)[:40]!r}"
        raise DataError(f"{why}; write the same kind of times as in training", path=path, line=line)
    clocks = _of_numbers(texts) or _of_texts(texts, order)
    for (line, cell), wrong in zip(rows, np.asarray(clocks.shown.isna())[codes].tolist(), strict=True):
        if wrong:
            hint = (
                ", and name the time zone in data.zone" if re.search(r"\d [A-Z][\w/]+$", _text(cell)) else ""
            )
            raise DataError(
                f"{str(cell)[:40]!r} is not a time; write 2024-01-31, 2024-01-31 13:00, "
                f"31.01.2024, 2024-01 or 2024-Q1{hint}",
                path=path,
                line=line,
            )
    bare = np.array([offset is None for offset in clocks.offsets])[codes]
    if bare.any() and not bare.all():
        line = rows[int(np.flatnonzero(bare != bare[0])[0])][0]
        why = "some times have an offset from UTC and some have none; write all in one way"
        raise DataError(why, path=path, line=line)
    notes = (f"{path}: {clocks.note}",) if clocks.note else ()
    if bare.any():
        return _without_offsets(path, rows[0], clocks.shown[codes], notes, base, zone)
    return _with_offsets(path, rows[0], clocks, codes, notes, base, zone)


def are_times(texts: Sequence[str]) -> bool:
    """Whether all texts are dates or times, not numbers."""
    words = dict.fromkeys(map(_text, texts))
    if not all(any(map(str.isdigit, text)) and not _NUMBER.fullmatch(text) for text in words):
        return False
    return any(not _of_texts(list(words), order).shown.isna().any() for order in ("day", "month"))


def count_times(texts: Sequence[str]) -> bool:
    """Whether numbers look like years, days of a spreadsheet or other times, and grow or come again."""
    clocks = _of_numbers(texts)
    return clocks is not None and len(texts) > 1 and clocks.shown.drop_duplicates().is_monotonic_increasing


def in_order(
    path: Path, name: str, lines: Sequence[int], times: Any, *, zone: str | None, again: bool
) -> tuple[Any, np.ndarray]:
    """The times of one series in order, and the place of each of them in the table.

    Args:
        path, name: of the table and the series, for errors.
        lines: [T] of the table.
        times: [T] as read.
        zone: of times without an offset.
        again: whether times may come again, in any order.

    Raises:
        DataError: a time comes twice, or the order changes; names the lines.
    """
    if zone is not None and times.dtype.kind == "M" and times.tz is None:
        times = _local(path, lines, times, zone)
    order = np.argsort(np.asarray(times), kind="stable")
    if again or len(times) < 2:
        return times[order], order
    within = f" in series {name!r}" if name else ""
    back = np.asarray(times[1:] < times[:-1])
    if back.any() and np.asarray(times[1:] > times[:-1]).any():
        at = int(back.argmax())
        why = f"{shown(times[at + 1])} comes after {shown(times[at])}{within}; sort the rows, or combine"
        line = lines[at + 1]
    else:
        same = np.asarray(times[order][1:] == times[order][:-1])
        if not same.any():
            return times[order], order
        at = int(same.argmax())
        first, line = sorted((lines[order[at]], lines[order[at + 1]]))
        why = f"{shown(times[order[at]])} is a duplicate of line {first}{within}; name every column that "
        why += "tells series apart in data.id (--id), give data.zone if clocks went back, or combine"
    why += " them: data.frequency: D (or h, MS) with data.resample: sum (or mean, last)"
    raise DataError(why, path=path, line=line)


def shown(time: Any) -> str:
    """A time as text; at midnight only the date."""
    return str(time).replace("T", " ").removesuffix(" 00:00:00")


def _local(path: Path, lines: Sequence[int], times: "pd.DatetimeIndex", zone: str) -> "pd.DatetimeIndex":
    """Clock times of one series as times of a zone."""
    back = -1 if times[0] > times[-1] else 1  # newest first
    try:
        found = times[::back].tz_localize(zone, ambiguous="infer")[::back]
    except ValueError:
        skipped = times.tz_localize(zone, nonexistent="NaT", ambiguous=np.ones(len(times), bool)).isna()
        twice = times.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward").isna()
        at = int(np.flatnonzero(skipped if skipped.any() else twice)[0])
        what = "skip it" if skipped.any() else "show it twice"
        raise DataError(
            f"{times[at]} is not one time in {zone}, whose clocks {what}; write times with offsets from UTC",
            path=path,
            line=lines[at],
        ) from None
    return found


def zone_of(name: str) -> str:
    """A time zone that pandas knows.

    Raises:
        ConfigError: it does not.
    """
    import pandas as pd

    try:
        pd.Timestamp(0, tz=name)
    except (ValueError, LookupError, TypeError, OSError):
        raise ConfigError(
            f"zone: unknown time zone {name[:40]!r}; write one such as Europe/Zagreb, UTC or +02:00"
        ) from None
    return name


def shown_times(times: "pd.DatetimeIndex | np.ndarray") -> list[str]:
    """Times as text, with their offsets from UTC if they have a zone; only dates if all are at midnight.

    Example:
        >>> import pandas as pd
        >>> shown_times(pd.DatetimeIndex(["2024-01-31", "2024-02-29"]))
        ['2024-01-31', '2024-02-29']
    """
    texts = [str(time).replace("T", " ") for time in times]
    days = all(text.endswith(" 00:00:00") for text in texts)
    return [text.removesuffix(" 00:00:00") for text in texts] if days else texts


def clock_of(times: Any) -> np.ndarray:
    """What clocks show at some times [T], without the zone, for figures."""
    if getattr(times, "tz", None) is not None:
        times = times.tz_localize(None)
    return np.asarray(times)


def _text(cell: Any) -> str:
    """A cell with the signs that pandas reads: 0.5 seconds, 1 PM, and whole numbers without a point."""
    text = str(cell).strip().replace("\u2212", "-")
    text = re.sub(r"(:\d\d),(\d+)", r"\1.\2", text)
    text = re.sub(r"(?i)(\d) ?([ap])\.?m\.?$", r"\1 \2m", text)
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", text)


def _steps(texts: Sequence[str], base: str | None) -> list[int]:
    """Whole numbers that count rows; empty if they look like dates, or the run has dates."""
    if base not in (None, STEPS) or not all(re.fullmatch(r"[+-]?\d+", text) for text in texts):
        return []
    return [] if base is None and _of_numbers(texts) is not None else [int(text) for text in texts]


def _of_numbers(texts: Sequence[str]) -> _Clocks | None:
    """Numbers that look like years, months (202401), days (20240131), Unix times or days of a spreadsheet."""
    import pandas as pd

    if not texts or not all(map(_NUMBER.fullmatch, texts)):
        return None
    numbers = [float(text) for text in texts]
    digits = {len(text) for text in texts if text.isdigit()} if all(map(str.isdigit, texts)) else set()
    bare: list[timedelta | None] = [None] * len(texts)
    if len(digits) == 1 and all(1500 <= int(text[:4]) < 2200 for text in texts):
        form = _DIGITS.get(len(texts[0]), "%f")
        times = pd.DatetimeIndex(pd.to_datetime(list(texts), format=form, errors="coerce"))
        if not times.isna().any():
            return _Clocks(times, bare, f"numbers such as {texts[0]} are dates ({shown(times[0])})")
    if len(digits) == 1 and (unit := _UNIX.get(digits.pop())):
        times = pd.to_datetime(np.array(texts, dtype=np.int64), unit=unit)
        said = f"numbers such as {texts[0]} are Unix times ({times[0]} UTC)"
        return _Clocks(times, [timedelta(0)] * len(texts), said)
    if all(20_000 <= number < 80_000 for number in numbers):
        times = pd.to_datetime(np.array(numbers), unit="D", origin="1899-12-30").round("ms")
        return _Clocks(times, bare, f"numbers such as {texts[0]} are a spreadsheet's days ({times[0]})")
    return None


def _of_texts(texts: Sequence[str], order: Order) -> _Clocks:
    """Clocks and their offsets; NaT for what is no time."""
    matches = [_OFFSET.fullmatch(text) for text in texts]
    plain = [_plain(match[1] if match else text, order) for match, text in zip(matches, texts, strict=True)]
    offsets: list[timedelta | None] = []
    for match in matches:
        written = "+00:00" if match and match[2].upper() in ("UTC", "GMT", "Z") else match and match[2]
        try:
            offsets.append(datetime.fromisoformat(f"2000-01-01T00{written}").utcoffset() if written else None)
        except ValueError:
            offsets.append(None)
    return _Clocks(_parsed(plain), offsets)


def _plain(text: str, order: Order) -> str:
    """A text that one of _FORMATS reads."""
    text = iso(text, order)
    if week := _WEEK.fullmatch(text):
        return f"{week[1]}-W{week[2]}-{week[3] or 1}"
    if quarter := _QUARTER.fullmatch(text):
        year, number = quarter[1] or quarter[4], int(quarter[2] or quarter[3])
        return f"{year}-{3 * number - 2:02d}"
    return text.replace("/", "-") if text[:4].isdigit() else text


def _parsed(texts: Sequence[str]) -> "pd.DatetimeIndex":
    """Texts read by the first of _FORMATS that fits, then names of months as dateutil reads them."""
    import pandas as pd

    left = pd.Series(texts, dtype=object)
    found = pd.Series(pd.NaT, index=left.index, dtype="datetime64[us]")
    left = left[[text[:1].isdigit() or bool(_WORDS.match(text)) for text in texts]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about guessed formats
        for form in (*_FORMATS, "mixed"):
            tried = left[left.map(lambda text: bool(_WORDS.match(text)))] if form == "mixed" else left
            got = pd.to_datetime(tried, format=form, errors="coerce").dropna()
            got = got[got.dt.year > 1]  # a month and a day without a year
            if not len(got):
                continue
            fine = (got.astype("datetime64[ns]").dt.nanosecond > 0).any() if got.dt.unit == "ns" else False
            found = found.astype("datetime64[ns]") if fine else found
            found[got.index] = got if fine or found.dt.unit == "ns" else got.dt.as_unit("us")
            left = left.drop(got.index)
            if not len(left):
                break
    return pd.DatetimeIndex(found)


def _without_offsets(
    path: str | Path,
    row: tuple[int, Any],
    shown: "pd.DatetimeIndex",
    notes: tuple[str, ...],
    base: str | None,
    zone: str | None,
) -> TimeColumn:
    if zone is not None:
        return TimeColumn(shown, zone_of(zone), notes)
    if not base:
        return TimeColumn(shown, "", notes)
    if (shown == shown.normalize()).all():
        return TimeColumn(shown.tz_localize(base), base, (*notes, f"{path}: days are those of {base}"))
    line, cell = row
    raise DataError(
        f"expected times with an offset from UTC, as in training ({base}), got {str(cell)[:40]!r}; "
        f"write them with an offset, or train with data.zone: their time zone",
        path=path,
        line=line,
    )


def _with_offsets(
    path: str | Path,
    row: tuple[int, Any],
    clocks: _Clocks,
    codes: np.ndarray,
    notes: tuple[str, ...],
    base: str | None,
    zone: str | None,
) -> TimeColumn:
    import pandas as pd

    away = pd.TimedeltaIndex(clocks.offsets)
    instants = (clocks.shown - away).tz_localize("UTC")
    chosen = zone_of(zone) if zone is not None else base
    if chosen:
        times = instants.tz_convert(chosen)
        if base is not None and (times.tz_localize(None) != clocks.shown).any():
            notes = (*notes, f"{path}: times are converted to {chosen}, as in training")
        return TimeColumn(times[codes], chosen, notes)
    found = _zone(instants, away)
    if not found and len((clocks.shown - clocks.shown.normalize()).unique()) == 1:
        return TimeColumn(clocks.shown[codes], "", (*notes, f"{path}: days are read without their offsets"))
    if not found and base is not None:
        line, cell = row
        raise DataError(
            f"expected times without offsets from UTC, as in training, got {str(cell)[:40]!r}; write local "
            "times, or train with data.zone: their time zone",
            path=path,
            line=line,
        )
    said = f"{path}: times are in {found or 'UTC'}"
    if base is not None:
        said += "; the training times, which have no offsets, are taken to be of the same clocks"
    elif len(away.unique()) > 1:
        said += ", whose offsets they have" if found else ", because no time zone has all their offsets"
        said += "; data.zone names another"
    return TimeColumn(instants.tz_convert(found or "UTC")[codes], found or "UTC", (*notes, said))


def _zone(instants: "pd.DatetimeIndex", away: "pd.TimedeltaIndex") -> str:
    """A fixed offset, or a zone whose clocks have these offsets; "" if there is none."""
    from zoneinfo import available_timezones

    if len(away.unique()) == 1:
        minutes = round(away[0].total_seconds() / 60)
        sign = "-" if minutes < 0 else "+"
        return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}" if minutes else "UTC"
    order = instants.argsort()
    instants, away = instants[order], away[order]
    at = np.flatnonzero(away[1:] != away[:-1])
    edges = np.unique([0, *at, *(at + 1), len(away) - 1])  # enough to reject most zones
    for name in dict.fromkeys([*_ZONES, *sorted(available_timezones())]):
        for chosen in (edges, slice(None)):
            clocks = instants[chosen].tz_convert(name).tz_localize(None)
            if (clocks - instants[chosen].tz_localize(None) != away[chosen]).any():
                break
        else:
            return name
    return ""
