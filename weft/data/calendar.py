"""The frequency of a series: infer it, list its times, and continue it.

Frequencies are pandas' aliases (B, QE-DEC, 15min), or "3 months" for another day of the month than the first
or the last, for which pandas has no alias. Times are in a zone or without one; pandas counts days by the
clocks of the zone. Read next: periods.py, which aligns a series with its frequency.
"""

import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import ConfigError
from weft.wording import plural

if TYPE_CHECKING:
    import pandas as pd

HOLES = 1.0
"""Maximum missing periods per row for an inferred frequency."""

OTHER_DAY = re.compile(r"(\d+) months?$")

DAY = 86400.0
WEEK = 7 * DAY


def infer(times: Any) -> str:
    """The frequency that contains all times with the fewest gaps; "" if there is none.

    pandas infers it if there are no gaps.

    Args:
        times: [T] increasing.

    Example:
        >>> infer(["2024-01-31", "2024-02-29", "2024-04-30"])
        'ME'
    """
    import pandas as pd

    times = pd.DatetimeIndex(times)
    if len(times) < 2:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 4 will return an offset instead of its name
        whole: Any = pd.infer_freq(times) if len(times) >= 3 else None
    if whole:
        return str(getattr(whole, "freqstr", whole))
    best, fewest = "", HOLES * len(times)
    for name in _candidates(times):
        if (times[-1] - times[0]).total_seconds() / about_seconds(name) > 2 + (1 + HOLES) * len(times):
            continue
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
        found = _same_day(first, range(0, months + 1, int(other[1])))
        return found[found <= last]
    return pd.date_range(first, last, freq=offset_of(name))


def after(name: str, last: Any, count: int) -> "pd.DatetimeIndex":
    """The next `count` times of a frequency.

    Example:
        >>> [str(day)[:10] for day in after("B", "2024-01-05", 2)]
        ['2024-01-08', '2024-01-09']
    """
    import pandas as pd

    last = pd.Timestamp(last)
    if other := OTHER_DAY.match(name):
        return _same_day(last, range(int(other[1]), int(other[1]) * count + 1, int(other[1])))
    times = pd.date_range(last, periods=count + 1, freq=offset_of(name))
    return times[times > last][:count]


def season_of(name: str) -> int:
    """Periods per season: hours per day, days per week, weeks, months or quarters per year; otherwise 1.

    Example:
        >>> [season_of(name) for name in ("15min", "h", "D", "B", "W-SUN", "MS", "QE-DEC", "YS-JAN")]
        [96, 24, 7, 5, 52, 12, 4, 1]
    """
    if months := months_of(name):
        return 12 // months if 12 % months == 0 else 1
    if type(offset_of(name)).__name__ == "BusinessDay":
        return 5 if offset_of(name).n == 1 else 1
    seconds = about_seconds(name)
    season = next((one for one in (DAY, WEEK, 52 * WEEK) if seconds < one), seconds)
    return round(season / seconds) if season % seconds == 0 else 1


def week_of(name: str) -> int:
    """Periods per week of a frequency below a day; otherwise 0.

    Example:
        >>> week_of("h"), week_of("15min"), week_of("D")
        (168, 672, 0)
    """
    seconds = about_seconds(name)
    return round(WEEK / seconds) if seconds < DAY and WEEK % seconds == 0 else 0


def months_of(name: str) -> int:
    """Number of months in a period; 0 if it does not consist of whole months."""
    if other := OTHER_DAY.match(name):
        return int(other[1])
    offset = offset_of(name)
    kind = type(offset).__name__
    for word, months in (("Year", 12), ("Quarter", 3), ("Month", 1)):
        if word in kind and "Week" not in kind:
            return months * int(offset.n)
    return 0


def same_period(one: str, other: str) -> bool:
    """Whether two frequencies have periods of the same number of months or weeks, such as MS and ME.

    Example:
        >>> same_period("MS", "BME"), same_period("QE-DEC", "QS-OCT"), same_period("B", "D")
        (True, True, False)
    """
    if months := months_of(one):
        return months == months_of(other)
    weeks = [about_seconds(name) // WEEK for name in (one, other)]
    return weeks[0] > 0 and weeks[0] == weeks[1] and not months_of(other)


def about_seconds(name: str) -> float:
    """Approximate length of a period, to reject a huge grid before building it."""
    if months := months_of(name):
        return months * 30 * DAY
    offset = offset_of(name)
    if type(offset).__name__ == "Week":
        return float(WEEK * offset.n)
    try:
        return float(offset.nanos) / 1e9
    except ValueError:  # business days
        return float(DAY * offset.n)


def fixed(nanoseconds: int) -> str:
    """The alias of a fixed step.

    Example:
        >>> fixed(7200 * 10**9), fixed(5 * 10**6)
        ('2h', '5ms')
    """
    units = ((DAY * 1e9, "D"), (3600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
    unit, name = next((int(unit), name) for unit, name in units if nanoseconds % int(unit) == 0)
    return name if nanoseconds == unit else f"{nanoseconds // unit}{name}"


def steps_between(times: "pd.DatetimeIndex") -> np.ndarray:
    """[T - 1] nanoseconds from each time to the next."""
    per = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[times.unit]
    return np.diff(times.asi8) * per


def offset_of(name: str) -> Any:
    """pandas' offset of an alias.

    Raises:
        ConfigError: the alias is unknown or steps backwards.
    """
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
    clock = times.tz_localize(None)
    months = np.diff(np.asarray(12 * clock.year + clock.month))
    if (months > 0).all():
        step = int(np.gcd.reduce(months))
        yield from (f"{step if step > 1 else ''}{anchor}" for anchor in ("MS", "ME", "BMS", "BME"))
        yield plural(step, "month")
    yield "B"
    if (days := int(np.gcd.reduce(steps_between(clock)))) % (DAY * 1e9) == 0:
        yield fixed(days)
    yield fixed(int(np.gcd.reduce(steps_between(times))))


def _same_day(first: Any, months: range) -> "pd.DatetimeIndex":
    """The same day and time some months later, or the last day of a shorter month."""
    import pandas as pd

    return pd.DatetimeIndex([first + pd.DateOffset(months=number) for number in months])
