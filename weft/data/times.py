"""Read a column of times: pandas parses it once for the whole table and converts it to one time base.

The base of a run is one of: "" for times without offsets from UTC, as written; STEPS for whole numbers; or a
time zone (UTC, +02:00, Europe/Zagreb). The training table decides it, and every other table is converted.

pandas alone reads 2024-T2 as February, UTC+01:00 with its sign reversed, Jan-24 in the year 1, 12:30 as of
today, and neither weeks nor 24:00; so texts are sorted here before it parses them.
Read next: calendar.py, the frequency of a series.
"""

import re
import sys
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.data.dialect import Order, begin_of, iso
from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

STEPS = "steps"

UNKNOWN = "unknown"
"""The base of a run that did not keep it: its times are in UTC if they have several offsets."""

_OPEN = (None, UNKNOWN)

_ZONES = (
    "Europe/London", "Europe/Berlin", "Europe/Athens", "America/New_York", "America/Chicago",
    "America/Denver", "America/Los_Angeles", "Australia/Sydney",
)  # fmt: skip
"""Tried first where offsets fit several zones; what such zones have in common is all that matters."""

LONGEST = 100  # maximum characters of a time

_OFFSET = re.compile(
    r"(?i)(.*\d[T ]\d.*?)\s*(?:(?:UTC|GMT)?([+-][01]\d(?::?[0-5]\d)?)|Z|UTC|GMT)(?:\[[\w/+-]+\]|\s\(.*\))?"
)
_HOURS = re.compile(r"(.*\d[T ])(\d\d?):(\d\d)( ?[-–] ?)(\d\d?):(\d\d)")
_FAR = re.compile(r".*:\d\d(?:\.\d+)?\s*[+-]\d\d:?\d\d")  # no place is so far from UTC
_MIDNIGHT = re.compile(r"(.*\d[T ])24:00((?::00)?(?:\.0+)?)")  # the end of a day
_LATE = re.compile(r"[T ](24:(?!00)|25:)")  # on the day on which clocks go back
_COUNTED = re.compile(r"(.*\d)[T ](\d\d?):(\d\d)(?::00)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_STEP = re.compile(r"[+-]?\d{1,18}")
_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?([1-7]))?", re.IGNORECASE)
_MONTH = re.compile(r"(\d{4})[- ]?M(\d\d?)", re.IGNORECASE)
_QUARTER = re.compile(r"(\d{4})[- ]?[QT]([1-4])|[QT]([1-4])[- /]?(\d{4})|([1-4])Q(\d{4})", re.IGNORECASE)
_MONTHS = re.compile(r"(?i).*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).*\d")
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
    """The times in the cells of a column."""
    import pandas as pd

    zone = zone and zone_of(zone)
    codes, found = pd.factorize(np.array([_text(cell) for _, cell in rows], dtype=object))
    texts = [str(text) for text in found]
    whole = all(map(_STEP.fullmatch, texts))
    numbers = None if base == STEPS else _of_numbers(texts)
    if whole and (base == STEPS or (base in _OPEN and numbers is None)):
        said = () if base == STEPS else (f"{path}: times such as {texts[0]} are steps, not dates",)
        return TimeColumn(np.array(list(map(int, texts)), np.int64)[codes], STEPS, said)
    if zone is not None and (counted := _counted(texts, order, zone)) is not None:
        note = f"{path}: times such as {texts[0]} are counted from midnight in {zone}"
        return TimeColumn(counted[codes], zone, (note,))
    clocks = numbers or _of_texts(texts, order, bare=base == "")
    if base == STEPS or clocks.shown.isna().any():
        _refuse(path, rows, np.asarray(clocks.shown.isna())[codes], steps=base == STEPS)
    bare = np.array([offset is None for offset in clocks.offsets])[codes]
    if bare.any() and not bare.all():
        line = rows[int((bare != bare[0]).argmax())][0]
        why = "some times have an offset from UTC and some have none; write all in one way"
        raise DataError(why, path=path, line=line)
    try:
        times, chosen, note = (_without_offsets if bare.any() else _with_offsets)(clocks, base, zone)
    except DataError as error:
        line, cell = rows[0]
        raise DataError(f"{str(cell)[:40]!r}: {error}", path=path, line=line) from None
    return TimeColumn(times[codes], chosen, tuple(f"{path}: {one}" for one in (clocks.note, note) if one))


def _days(texts: Sequence[str], order: Order) -> tuple[Any, Any]:
    """The days [T] of counted times, and how far into them they are."""
    import pandas as pd

    found = [match for text in texts if (match := _COUNTED.fullmatch(text))]
    minutes = [60 * int(one[2]) + int(one[3]) for one in found]
    return _of_texts([one[1] for one in found], order).shown, pd.Series(pd.to_timedelta(minutes, unit="min"))


def _counted(texts: Sequence[str], order: Order, zone: str) -> "pd.DatetimeIndex | None":
    """Times that count on from midnight: past 24:00, or as many as a longer or a shorter day has; else None.

    On a short day that has all times of a usual one, they are those of clocks.
    """
    import pandas as pd

    if not all(map(_COUNTED.fullmatch, texts)):
        return None
    days, into = _days(texts, order)
    late, day = any(map(_LATE.search, texts)), pd.Timedelta(days=1)
    if not late and (days.isna().any() or into.nunique() < 2):
        return None
    told = days + pd.TimedeltaIndex(into)
    midnight, clocks, after = (
        time.tz_localize(zone, nonexistent="shift_forward", ambiguous=np.ones(len(days), bool))
        for time in (days, told, days + day)
    )
    skipped = told.tz_localize(zone, nonexistent="NaT", ambiguous=np.ones(len(days), bool)).isna()
    each, length = into.groupby(days), (after - midnight).to_numpy()
    step = into.drop_duplicates().sort_values().diff().min()
    count = (each.transform("size") * step).to_numpy()
    odd = days.isin(days[skipped]) | ((count > day) & (length > day))
    if not late and not (odd.any() and (count == length)[odd].all()):
        return None
    short = (each.transform("max") - each.transform("min") + step).to_numpy() > length
    return (midnight + pd.TimedeltaIndex(into)).where(~short, clocks)


def _refuse(path: str | Path, rows: Sequence[tuple[int, Any]], wrong: np.ndarray, *, steps: bool) -> None:
    at = int(wrong.argmax())
    line, cell = rows[at]
    if steps:
        line, cell = next(row for row in rows if not _STEP.fullmatch(_text(row[1])))
        what = "a whole number such as 17; write times as in training"
    else:
        what = "a time; write 2024-01-31, 2024-01-31 13:00, 31.01.2024, 2024-01 or 2024-Q1"
        what += ", and name the time zone in data.zone" if re.search(r"\d [A-Z][\w/]+$", _text(cell)) else ""
        if _LATE.search(_text(cell)):
            what += (
                "; periods are counted on along a day on which clocks go back: name the zone of the clocks, "
            )
            what += "such as --zone Europe/Madrid (data.zone), or write offsets (2024-10-27T02:00+01:00)"
        elif wrong.all():
            what += "; or name the column of times (data.time, --time)"
        elif at == 0 or wrong[at:].all():
            what += f"; remove the line if it is {'part of the header' if at == 0 else 'a total or a remark'}"
    raise DataError(f"{str(cell)[:40]!r} is not {what}", path=path, line=line)


def are_times(texts: Sequence[str]) -> bool:
    """Whether all texts are dates or times, not numbers."""
    words = dict.fromkeys(map(_text, texts))
    if not all(any(map(str.isdigit, text)) and not _NUMBER.fullmatch(text) for text in words):
        return False
    try:
        return any(not _of_texts(list(words), order).shown.isna().any() for order in ("day", "month"))
    except ModuleNotFoundError:  # without pandas nothing is forecast
        return False


def count_times(texts: Sequence[str]) -> bool:
    """Whether numbers look like years, days of a spreadsheet or other times, and grow or come again."""
    clocks = _of_numbers(texts)
    return clocks is not None and len(texts) > 1 and clocks.shown.drop_duplicates().is_monotonic_increasing


def in_order(
    path: Path, name: str, lines: Sequence[int], times: Any, *, zone: str | None, again: bool
) -> tuple[Any, np.ndarray, bool]:
    """The times [T] of one series in order, the place of each of them in the table, and whether one moved."""
    if zone is not None and times.dtype.kind == "M" and times.tz is None:
        times = _local(path, lines, times, zone)
    order = np.argsort(np.asarray(times), kind="stable")
    if again or len(times) < 2:
        return times[order], order, False
    within = f" in series {name!r}" if name else ""
    if moved := bool((order[1:] < order[:-1]).any()):
        _check_months(path, lines, times, within)
    same = np.asarray(times[order][1:] == times[order][:-1])
    if same.any():
        at = int(same.argmax())
        first, line = sorted((lines[order[at]], lines[order[at + 1]]))
        time = times[order[at]]
        back = zone is None and times.dtype.kind == "M" and times.tz is None and time.normalize() != time
        first_way = "name the zone if clocks went back (data.zone, --zone)" if back else "remove one of them"
        why = f"{shown(time)} is a duplicate of line {first}{within}; {first_way}, name every column that "
        why += "tells series apart (data.id, --id), or take the mean or sum of each period (data.resample, "
        why += "--resample)"
        raise DataError(why, path=path, line=line)
    return times[order], order, moved


def _check_months(path: Path, lines: Sequence[int], times: Any, within: str) -> None:
    """Check that unsorted times [T] are not sorted with day and month the other way round in some of them."""
    back = np.append(False, np.asarray(times[1:] < times[:-1]))
    if times.dtype.kind != "M" or 4 * back.sum() > len(times):  # rows in any order go back at every second
        return
    clock = times.tz_localize(None)
    for asked in (back, True):
        chosen = np.asarray(clock.day <= 12) & asked
        turned = [one.replace(day=one.month, month=one.day) for one in clock[chosen]]
        found = clock.to_series(range(len(clock)))
        found[chosen] = turned
        if found.is_monotonic_increasing:
            at = int(back.argmax())
            why = f"{shown(times[at])} comes after {shown(times[at - 1])}{within}, as if day and month were "
            raise DataError(
                f"{why}mixed up; write dates as 2024-01-31, or sort the rows", path=path, line=lines[at]
            )


def shown(time: Any) -> str:
    """A time as text; at midnight only the date."""
    return str(time).replace("T", " ").removesuffix(" 00:00:00")


def _local(path: Path, lines: Sequence[int], times: "pd.DatetimeIndex", zone: str) -> "pd.DatetimeIndex":
    """Clock times of one series as times of a zone."""
    back = -1 if times[0] > times[-1] else 1  # newest first
    try:
        found = times[::back].tz_localize(zone, ambiguous="infer")[::back]
    except _no_clock():
        skipped = times.tz_localize(zone, nonexistent="NaT", ambiguous=np.ones(len(times), bool)).isna()
        if not skipped.any() and (regular := _regular(times, zone)) is not None:
            return regular
        twice = times.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward").isna()
        at = int(np.flatnonzero(skipped if skipped.any() else twice)[0])
        what = "skip it" if skipped.any() else "show it twice"
        raise DataError(
            f"{times[at]} is not one time in {zone}, whose clocks {what}; sort the rows if they are "
            "not in order, write times with offsets from UTC, or leave data.zone (--zone) out",
            path=path,
            line=lines[at],
        ) from None
    return found


def _regular(times: "pd.DatetimeIndex", zone: str) -> "pd.DatetimeIndex | None":
    """Clock times of which those that come twice are all the first, or all the second, whichever is regular.

    Where clocks go back by 30 minutes, a table of hours has each time once.
    """
    first, second = (times.tz_localize(zone, ambiguous=np.full(len(times), one)) for one in (True, False))
    steps = [int(np.gcd.reduce(np.diff(one.asi8))) for one in (first, second)]
    return None if steps[0] == steps[1] else first if steps[0] > steps[1] else second


def _no_clock() -> tuple[type[Exception], ...]:
    """What pandas raises for a time that clocks skip or show twice; before version 3, errors of pytz."""
    pytz = sys.modules.get("pytz.exceptions")
    return (ValueError,) if pytz is None else (ValueError, pytz.Error)


def zone_of(name: str) -> str:
    """A time zone that pandas knows."""
    import pandas as pd

    try:
        pd.Timestamp(0, tz=name)
    except (ValueError, LookupError, TypeError, OSError):
        raise ConfigError(
            f"zone: unknown time zone {name[:40]!r}; write one such as Europe/Zagreb, UTC or +02:00"
        ) from None
    return name


def shown_times(times: "pd.DatetimeIndex | np.ndarray") -> list[str]:
    """Times as text, with their offsets from UTC if they have a zone; only dates if all are at midnight."""
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
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}\u2026"
    text = re.sub(r"(:\d\d),(\d+)", r"\1.\2", text)
    text = re.sub(r"(?i)(\d) ?([ap])\.?m\.?$", r"\1 \2m", text)
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", text)


def _of_numbers(texts: Sequence[str]) -> _Clocks | None:
    """Numbers that look like dates (2024, 20240131), Unix times or days of a spreadsheet."""
    import pandas as pd

    if not texts or not all(map(_NUMBER.fullmatch, texts)):
        return None
    bare: list[timedelta | None] = [None] * len(texts)
    size = len(texts[0]) if texts[0].isdigit() and len(set(map(len, texts))) == 1 else 0
    if size in _DIGITS and all(1500 <= int(text[:4]) < 2200 for text in texts):
        weeks = size == 6 and any(int(text[4:]) > 12 for text in texts)
        found = [f"{text}1" for text in texts] if weeks else list(texts)
        form = "%G%V%u" if weeks else _DIGITS[size]
        times = pd.DatetimeIndex(pd.to_datetime(found, format=form, errors="coerce"))
        if not times.isna().any():
            what = "ISO weeks" if weeks else "dates"
            return _Clocks(times, bare, f"numbers such as {texts[0]} are {what} ({shown(times[0])})")
    if size in _UNIX and max(map(int, texts)) < 2**63:
        times = pd.to_datetime(np.array(texts, dtype=np.int64), unit=_UNIX[size])
        said = f"numbers such as {texts[0]} are Unix times ({times[0]} UTC)"
        return _Clocks(times, [timedelta(0)] * len(texts), said)
    days = np.array(texts, dtype=np.float64)
    if ((days >= 20_000) & (days < 80_000)).all():
        times = pd.to_datetime(days, unit="D", origin="1899-12-30").round("ms")
        return _Clocks(
            times, bare, f"numbers such as {texts[0]} are a spreadsheet's days ({shown(times[0])})"
        )
    return None


def _of_texts(texts: Sequence[str], order: Order, *, bare: bool = False) -> _Clocks:
    """Clocks and their offsets; NaT for what is no time. `bare`: times of the run have no offsets."""
    plain, offsets = [], list[timedelta | None]()
    late = []
    for text in _begins(list(map(begin_of, texts)), bare):
        match = _OFFSET.fullmatch(text)
        clock = match[1] if match else text
        late.append(midnight := _MIDNIGHT.fullmatch(clock))
        plain.append(_plain(f"{midnight[1]}00:00{midnight[2]}" if midnight else clock, order))
        offset = "" if match is None else match[2] or "Z"
        offsets.append(datetime.fromisoformat(f"2000-01-01T00{offset}").utcoffset())
    shown = _parsed(plain)
    if any(late):
        shown += np.where([one is not None for one in late], np.timedelta64(1, "D"), np.timedelta64(0, "D"))
    return _Clocks(shown, offsets)


def _begins(texts: Sequence[str], bare: bool) -> Sequence[str]:
    """The begins of hours such as 01.01.2024 00:00-01:00; other texts as they are.

    The end of an hour looks like an offset from UTC, but it moves with its begin. Where all rows have the
    same hour, the sign or the date tells it: offsets are written with a minus, after dates in ISO 8601.
    """
    found = [match for text in texts if (match := _HOURS.fullmatch(text))]
    if len(found) < len(texts):
        return texts
    begins, ends = ([60 * int(one[n]) + int(one[n + 1]) for one in found] for n in (2, 5))
    lengths = {(end - begin) % 1440 for begin, end in zip(begins, ends, strict=True)}
    plain = all(one[4][-1] in "– " or re.match(r"\d\d?\.\d", one[1]) for one in found)
    hours = len(lengths) == 1 and 0 not in lengths and (bare or plain or len(set(begins)) > 1)
    return [f"{one[1]}{one[2]}:{one[3]}" for one in found] if hours else texts


def _plain(text: str, order: Order) -> str:
    """A text that one of _FORMATS reads."""
    text = iso(text, order)
    if week := _WEEK.fullmatch(text):
        return f"{week[1]}-W{week[2]}-{week[3] or 1}"
    if month := _MONTH.fullmatch(text):
        return f"{month[1]}-{int(month[2]):02d}"
    if quarter := _QUARTER.fullmatch(text):
        year, number = quarter[1] or quarter[4] or quarter[6], int(quarter[2] or quarter[3] or quarter[5])
        return f"{year}-{3 * number - 2:02d}"
    return text.replace("/", "-") if text[:4].isdigit() else text


def _parsed(texts: Sequence[str]) -> "pd.DatetimeIndex":
    """Texts read by the first of _FORMATS that fits, then names of months as dateutil reads them."""
    import pandas as pd

    left = pd.Series(list(texts), dtype=object)
    named = left.map(lambda text: bool(_MONTHS.match(text))).astype(bool)
    far = left.map(lambda text: bool(_FAR.fullmatch(text))).astype(bool)
    left = left[(named | left.str[:1].str.isdigit()) & ~far]
    parts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about guessed formats
        for form in (*_FORMATS, "mixed"):
            tried = left[named] if form == "mixed" else left
            found = pd.to_datetime(tried, format=form, errors="coerce").dropna()
            found = found[found.dt.year > 1]  # dateutil's for a month and a day without a year
            left, named = left.drop(found.index), named.drop(found.index)
            parts += [found] if len(found) else []
    whole = pd.concat(parts) if parts else pd.Series([], dtype="datetime64[us]")
    return pd.DatetimeIndex(whole.reindex(range(len(texts))))


def _without_offsets(clocks: _Clocks, base: str | None, zone: str | None) -> tuple[Any, str, str]:
    """The times, their zone, and what was assumed."""
    if zone is not None:
        return clocks.shown, zone, ""
    if not base or base in _OPEN:
        return clocks.shown, "", ""
    if (clocks.shown == clocks.shown.normalize()).all():
        return clocks.shown.tz_localize(base), base, f"days are those of {base}"
    raise DataError(
        f"expected times with an offset from UTC, as in training ({base}); write them with one, or train "
        "with data.zone: their time zone"
    )


def _with_offsets(clocks: _Clocks, base: str | None, zone: str | None) -> tuple[Any, str, str]:
    """The times, their zone, and what was assumed."""
    import pandas as pd

    away = pd.TimedeltaIndex(clocks.offsets)
    instants = (clocks.shown - away).tz_localize("UTC")
    chosen = base if zone is None else zone
    if chosen and chosen not in _OPEN:
        times = instants.tz_convert(chosen)
        other = base is not None and (times.tz_localize(None) != clocks.shown).any()
        return times, chosen, f"times are converted to {chosen}, as in training" if other else ""
    found = "" if base == UNKNOWN and len(away.unique()) > 1 else _zone(instants, away)
    if not found and len((clocks.shown - clocks.shown.normalize()).unique()) == 1:
        return clocks.shown, "", "days are read without their offsets"
    if not found and base not in _OPEN:
        raise DataError(
            "expected times without offsets from UTC, as in training; write local times, or train with "
            "data.zone: their time zone"
        )
    said = f"times are in {found or 'UTC'}"
    if base not in _OPEN:
        said += "; the training times, which have no offsets, are taken to be of the same clocks"
    elif base is None and len(away.unique()) > 1:
        said += ", whose offsets they have" if found else ", because no time zone has all their offsets"
        said += "; data.zone names another"
    return instants.tz_convert(found or "UTC"), found or "UTC", said


def _zone(instants: "pd.DatetimeIndex", away: "pd.TimedeltaIndex") -> str:
    """A fixed offset, or a zone whose clocks have these offsets; "" if there is none."""
    from zoneinfo import ZoneInfo, available_timezones

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
            clocks = instants[chosen].tz_convert(ZoneInfo(name)).tz_localize(None)
            if (clocks - instants[chosen].tz_localize(None) != away[chosen]).any():
                break
        else:
            return name
    return ""
