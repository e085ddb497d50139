"""The frequency of a series: infer it, list and continue its times, align or aggregate its rows.

Frequencies are pandas' aliases (B, QE-DEC, 15min), or "3 months" for another day of the month than the first
or the last, for which pandas has no alias. Times are in a zone or without one; pandas counts days by the
clocks of the zone. Missing periods become gaps; irregular rows raise an error. Read next: series.py, which
reads tables.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.data.times import shown
from weft.errors import ConfigError, DataError
from weft.wording import plural

if TYPE_CHECKING:
    import pandas as pd

HOLES = 1.0
"""Maximum missing periods per row for an inferred frequency that is not the usual step."""

FREE_HOLES = 20.0
"""The same for the usual step, for a frequency given by the user, and for whole numbers."""

MOST_VALUES = 30_000_000
"""Maximum periods times columns that rows of a series are aggregated into; 57 years of minutes."""

SELDOM = 0.01  # a step that fewer steps have is no frequency: clocks were changed there

FEW_TIMES = 8  # fewer times tell no frequency: a week of business days may be days

FEWEST = 3  # periods that tell whether another one is incomplete

OTHER_DAY = re.compile(r"(\d+) months?(?: on day (\d\d?))?$")
"""Months that begin on the day of the first time, or on another one if a month has it."""

OFTEN = 3
"""A time of day or a weekday that comes so often, always without a value, is said never to have one."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DAY = 86400.0
WEEK = 7 * DAY


def infer(times: Any) -> str:
    """The frequency that contains all times [T], increasing, with the fewest gaps; "" if there is none."""
    import pandas as pd

    times = pd.DatetimeIndex(times)
    if len(times) < 2:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 4 will return an offset instead of its name
        whole: Any = pd.infer_freq(times) if len(times) >= 3 else None
    if whole:
        return str(getattr(whole, "freqstr", whole))
    steps = np.diff(times.asi8)
    share = FREE_HOLES if (steps == np.gcd.reduce(steps)).mean() >= 0.5 else HOLES  # opening hours
    best, fewest = "", share * len(times)
    for name in _candidates(times):
        if seconds_between(times) / about_seconds(name) <= 2 + (1 + share) * len(times):
            on = grid(name, times[0], times[-1])
            holes = len(on) - len(times)
            if (holes < fewest or (not holes and not best)) and times.isin(on).all():
                best, fewest = name, holes
    return best


def grid(name: str, first: Any, last: Any) -> "pd.DatetimeIndex":
    """All times of a frequency from `first` to `last`, inclusive."""
    import pandas as pd

    first, last = pd.Timestamp(first), pd.Timestamp(last)
    if other := OTHER_DAY.match(name):
        months = 12 * (last.year - first.year) + last.month - first.month
        found = _same_day(first, range(0, months + 1, int(other[1])), other[2])
        return found[found <= last]
    return _dates(name, first, end=last)


def after(name: str, last: Any, count: int) -> "pd.DatetimeIndex":
    """The next `count` times of a frequency."""
    import pandas as pd

    last = pd.Timestamp(last)
    if other := OTHER_DAY.match(name):
        return _same_day(last, range(int(other[1]), int(other[1]) * count + 1, int(other[1])), other[2])
    times = _dates(name, last, periods=count + 1)
    return times[times > last][:count]


def season_of(name: str) -> int:
    """Periods per season: hours per day, days per week, weeks, months or quarters per year; otherwise 1."""
    if months := months_of(name):
        return 12 // months if 12 % months == 0 else 1
    if type(offset_of(name)).__name__ == "BusinessDay":
        return 5 if offset_of(name).n == 1 else 1
    seconds = about_seconds(name)
    season = next((one for one in (DAY, WEEK, 52 * WEEK) if seconds < one), seconds)
    return round(season / seconds) if season % seconds == 0 else 1


def week_of(name: str) -> int:
    """Periods per week of a frequency below a day, such as 168 of "h"; otherwise 0."""
    seconds = about_seconds(name)
    return round(WEEK / seconds) if seconds < DAY and WEEK % seconds == 0 else 0


def unmeasured(times: Any, values: np.ndarray) -> str:
    """The times of day, such as 23:00 to 05:00, and weekdays at which values [T] never have one; or ""."""
    import pandas as pd

    measured = np.isfinite(values)
    if measured.all() or times.dtype.kind != "M":
        return ""
    clock = pd.DatetimeIndex(times).tz_localize(None)
    if len(clock) < 2 or np.diff(clock.to_numpy()).min() > np.timedelta64(1, "D"):
        return ""
    found = []
    for places, name in (
        (clock.hour * 60 + clock.minute, lambda at: f"{at // 60:02}:{at % 60:02}"),
        (clock.day_of_week, WEEKDAYS.__getitem__),
    ):
        days = pd.DataFrame({"day": clock.normalize(), "at": places, "has": measured}).groupby("at")
        never = ~days["has"].any() & (days["day"].nunique() >= OFTEN)
        if never.any() and not never.all():
            first = int(np.argmin(never))  # one with values, so that a night is one stretch
            at, empty = np.roll(never.index, -first), np.roll(never, -first)
            edges = np.flatnonzero(np.diff(empty, append=False)).reshape(-1, 2)
            found += [
                name(at[start + 1]) + (f" to {name(at[end])}" if end > start + 1 else "")
                for start, end in edges
            ]
    return ", ".join(found)


def months_of(name: str) -> int:
    """Number of months in a period; 0 if it does not consist of whole months."""
    if other := OTHER_DAY.match(name):
        return int(other[1])
    offset = offset_of(name)
    found = re.search("Year|Quarter|Month(?!.*Week)", type(offset).__name__)
    return {"Year": 12, "Quarter": 3, "Month": 1}[found[0]] * int(offset.n) if found else 0


def seconds_between(times: "pd.DatetimeIndex") -> float:
    """Seconds from the first of some times to the last, also where pandas' Timedelta would overflow."""
    return float(times[-1].timestamp() - times[0].timestamp())


def about_seconds(name: str) -> float:
    """Approximate length of a period; a month is 31 days."""
    if months := months_of(name):
        return months * 31 * DAY
    first, second = after(name, "2001-01-01", 2)  # a Monday
    return float((second - first).value / 1e9)


def alias_of(step: Any) -> str:
    """The alias of a fixed step, such as 7D or 5ms."""
    from pandas.tseries.frequencies import to_offset

    days = step.total_seconds() / DAY
    return str(to_offset(f"{days:.0f}D" if days and days.is_integer() else step).freqstr)


def offset_of(name: str) -> Any:
    """pandas' offset of an alias."""
    from pandas.tseries.frequencies import to_offset

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an alias that pandas deprecated, such as H or M
            offset = to_offset(name)
    except (ValueError, TypeError, Warning):
        offset = None
    if offset is None or offset.n < 1:
        raise ConfigError(
            f"frequency: unknown frequency {name!r}; use a pandas alias such as h, 15min, D, B, "
            "W-SUN, MS, ME, QS, QE or YS"
        )
    return offset


def _candidates(times: "pd.DatetimeIndex") -> Iterator[str]:
    """Frequencies that may contain all times, calendar frequencies first."""
    import pandas as pd

    clock = times.tz_localize(None)
    months = np.diff(np.asarray(12 * clock.year + clock.month))
    if (months > 0).all():
        step = int(np.gcd.reduce(months))
        yield from (f"{step if step > 1 else ''}{anchor}" for anchor in ("MS", "ME", "BMS", "BME"))
        yield plural(step, "month") + (f" on day {clock.day.max()}" if clock.day.max() > 28 else "")
    yield "B"
    for one in (clock.normalize(), times):
        step = int(np.gcd.reduce(steps := np.diff(one.asi8)))
        if step and (steps == step).mean() >= SELDOM:
            yield alias_of(pd.Timedelta(step, unit=one.unit))


def _dates(name: str, first: Any, *, end: Any = None, periods: int | None = None) -> "pd.DatetimeIndex":
    """The times of an alias; days and longer periods go by the zone's clocks, which may skip midnight."""
    import pandas as pd

    offset = offset_of(name)
    try:
        if first.tz is None or about_seconds(name) < DAY:
            return pd.date_range(first, end, periods=periods, freq=offset)
        end = None if end is None else end.tz_localize(None)
        clock = pd.date_range(first.tz_localize(None), end, periods=periods, freq=offset)
        return clock.tz_localize(first.tz, nonexistent="shift_forward", ambiguous=np.ones(len(clock), bool))
    except (ValueError, OverflowError):
        raise beyond(first, name) from None


def _same_day(first: Any, months: range, day: str | None) -> "pd.DatetimeIndex":
    """The same day and time some months later, or the last day of a shorter month."""
    import pandas as pd

    try:
        found = pd.DatetimeIndex([first + pd.DateOffset(months=number) for number in months])
        if day is None:
            return found
        late = np.minimum(found.days_in_month, int(day)) - found.day
        clock = found.tz_localize(None) + pd.to_timedelta(late, unit="D")
        return clock.tz_localize(found.tz, nonexistent="shift_forward", ambiguous=np.ones(len(clock), bool))
    except (ValueError, OverflowError):
        raise beyond(first, plural(months.step, "month")) from None


def beyond(first: Any, name: str) -> DataError:
    """The error for times outside pandas' calendar, which before version 3 ended in the year 2262."""
    return DataError(f"expected times that a calendar can count, got {first} and {name}; correct them")


class Grid(NamedTuple):
    """All periods of a series, and which of them have rows."""

    frequency: str
    times: "pd.DatetimeIndex | np.ndarray"  # [P] every period from the first row to the last
    places: np.ndarray  # [T] index of each row's period


def aligned(place: str, times: Any, frequency: str | None = None, *, trained: bool = False) -> Grid:
    """Align the times of a series with its frequency.

    If it is that of a training table (`trained`), rows that fit another one better are refused.
    """
    most = (1 + FREE_HOLES) * len(times) + 100
    if times.dtype.kind != "M":
        return _steps(place, times, most)
    name = infer(times) if frequency is None else frequency
    if not name:
        if len(times) < 2:
            return Grid("", times, np.arange(len(times)))
        raise irregular(place, times)
    other = infer(times) if trained and len(times) >= FEW_TIMES else name
    fits = other in ("", name) or alike(name, other)
    if not fits and len(grid(other, times[0], times[-1])) == len(times):
        raise DataError(
            f"{place}: expected rows at the frequency {name}, as in training, got {other}; give rows at "
            f"{name} (empty cells where nothing was measured), or train a run on a table at {other}"
        )
    if seconds_between(times) / about_seconds(name) > most:
        raise DataError(
            f"{place}: expected times at the frequency {name}, got {plural(len(times), 'row')} from "
            f"{shown(times[0])} to {shown(times[-1])}; give a table with rows at this frequency"
        )
    on = grid(name, times[0], times[-1])
    missing = ~times.isin(on)
    if missing.any():
        other = infer(times)
        if other and alike(name, other):  # months that begin, and months that end
            return aligned(place, times, other)
        first = times[missing][0]
        raise DataError(
            f"{place}: expected times at the frequency {name}, got {shown(first)}, which is not one of its "
            f"times; correct it, or give data.resample: mean (or sum, last) with data.frequency: {name}"
        )
    return Grid(name, on, on.get_indexer(times))


def resampled(
    times: Any, columns: np.ndarray, frequency: str, how: Sequence[str], end: Any = None
) -> tuple[Any, np.ndarray]:
    """Aggregate rows at times [T] into periods: their times [P] and columns [P, F]; NaN without values.

    In periods without a row up to `end`, a sum is 0.
    """
    import pandas as pd

    count = seconds_between(times) / about_seconds(_period(times, frequency))
    if (values := count * columns.shape[1]) > MOST_VALUES:
        raise DataError(
            f"expected periods with {MOST_VALUES:,} values at most, got {values:,.0f} at the frequency "
            f"{frequency} from {shown(times[0])} to {shown(times[-1])}; give a longer data.frequency, or "
            "correct the times"
        )
    sums = [n for n, one in enumerate(how) if one == "sum"] if end is not None and end >= times[0] else []
    rows = np.ones(len(times))
    if sums and end > times[-1]:
        times, rows = times.append(times[:0].insert(0, end)), np.append(rows, 0.0)
        columns = np.pad(columns, ((0, 1), (0, 0)), constant_values=np.nan)
    try:
        groups = pd.DataFrame(columns, index=times).resample(offset_of(frequency))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about periods without values
            found = [
                groups[n].sum(min_count=1) if one == "sum" else getattr(groups[n], one)()
                for n, one in enumerate(how)
            ]
        whole = pd.concat(found, axis=1)
        values = whole.to_numpy(float, copy=True)
        if sums:
            first = pd.Series(rows, index=times).resample(offset_of(frequency)).sum().to_numpy()
            until = len(
                pd.Series(0, index=times[:1].append(times[:0].insert(0, end)))
                .resample(offset_of(frequency))
                .sum()
            )
            values[np.ix_(np.flatnonzero(first[:until] == 0), np.array(sums))] = 0.0
    except (ValueError, OverflowError):
        raise beyond(times[-1], frequency) from None
    return whole.index, values


def incomplete(times: Any, frequency: str) -> tuple[Any, Any]:
    """The end of a first and the begin of a last period that lack rows; None if they do not.

    The rows of such a period begin later, or end earlier, than in nine of ten others.
    """
    import pandas as pd

    rows = pd.Series(times, index=times).sort_index()
    found = rows.resample(offset_of(_period(times, frequency))).agg(["min", "max"]).dropna()
    if len(found) <= FEWEST:
        return None, None
    begins, ends = ((found[one] - found.index).to_numpy() for one in ("min", "max"))
    first = found["min"].iloc[1] if begins[0] > np.quantile(begins[1:], 0.9) else None
    return first, found["min"].iloc[-1] if ends[-1] < np.quantile(ends[:-1], 0.1) else None


def _period(times: Any, frequency: str) -> str:
    """A frequency with periods."""
    if times.dtype.kind != "M":
        raise ConfigError("resample: expected dates or times, got whole numbers; leave data.resample out")
    if OTHER_DAY.match(frequency):
        raise ConfigError(f"resample: expected a frequency with periods, such as MS or ME, got {frequency!r}")
    return frequency


def step_of(steps: np.ndarray) -> int:
    """The distance of whole numbers [T] that count periods."""
    return int(np.gcd.reduce(np.diff(steps))) if len(steps) > 1 else 1


def irregular(place: str, times: "pd.DatetimeIndex") -> DataError:
    """The error for times that fit no frequency."""
    import pandas as pd

    between = pd.Series(times.as_unit("us")).diff()[1:]  # nanoseconds overflow after 292 years
    counts = between.value_counts()
    usual = counts.index[0]
    at = int((between != usual).to_numpy().argmax())
    zoned = "" if times.tz is None else ", or data.zone if they are days of another time zone"
    if times.tz is None and (times != times.normalize()).any():
        zoned = ", or data.zone, the zone of the times, if its clocks were changed there"
    elif times.tz is not None and (clock := infer(times.tz_localize(None))):
        zoned = f", or leave data.zone or the offsets out: the clocks of {times.tz} are regular ({clock})"
    return DataError(
        f"{place}: expected regular times, got {shown(times[at])} followed by {shown(times[at + 1])} "
        f"({counts.iloc[0]:,} of {len(between):,} steps are {alias_of(usual)}, {len(counts):,} different "
        f"steps in all); give data.frequency (such as {_coarse(usual.total_seconds())}) and "
        f"data.resample: mean (or sum, last) to gather the rows into periods{zoned}"
    )


def alike(one: str, other: str) -> bool:
    """Whether periods have the same number of months, or of weeks."""
    if months := months_of(one):
        return months == months_of(other)
    seconds = about_seconds(one)
    return seconds % WEEK == 0 and seconds == about_seconds(other) and not months_of(other)


def _steps(place: str, times: np.ndarray, most: float) -> Grid:
    """Whole numbers as a grid without gaps."""
    step = step_of(times)
    if (times[-1] - times[0]) / step > most:
        raise DataError(
            f"{place}: expected whole numbers at regular distances, got {plural(len(times), 'row')} from "
            f"{times[0]} to {times[-1]}; correct them"
        )
    return Grid("", np.arange(times[0], times[-1] + 1, step), (times - times[0]) // step)


def _coarse(seconds: float) -> str:
    """A simple period at least as long as a step."""
    periods = {"min": 60, "h": 3600, "D": DAY, "W": WEEK}
    return next((name for name, least in periods.items() if seconds <= least), "MS")
