"""The frequency of a series: infer it, list its times, and continue it.

Frequencies are pandas aliases (B, QE-DEC, 15min). They are inferred by pandas if a series has no gaps, and
by trying its offsets otherwise. Read next: periods.py, which aligns a series with its frequency.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ConfigError
from weft.wording import plural

HOLES = 1.0
"""Maximum missing periods per row for an inferred frequency."""

OTHER_DAY = re.compile(r"(\d+) months?$")  # such as the 15th of each month, for which pandas has no alias


def infer(times: np.ndarray) -> str:
    """The frequency that contains all times with the fewest gaps; "" if there is none.

    Args:
        times: [T] datetime64[s], increasing.

    Example:
        >>> infer(np.array(["2024-01-31", "2024-02-29", "2024-04-30"], dtype="datetime64[s]"))
        'ME'
    """
    if len(times) >= 3 and (whole := _infer_without_gaps(times)):
        return whole
    best, fewest = "", HOLES * len(times)
    for name in _candidates(times):
        holes = len(grid(name, times[0], times[-1])) - len(times)
        if holes < fewest or (not holes and not best):
            best, fewest = name, holes
    return best


def grid(name: str, first: np.datetime64, last: np.datetime64) -> np.ndarray:
    """All times of a frequency from `first` to `last`, inclusive."""
    if other := OTHER_DAY.match(name):
        step = int(other[1])
        months = (last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(int)
        found = _same_day(first, step * np.arange(months // step + 1))
        return found[found <= last]
    import pandas as pd

    return np.asarray(pd.date_range(_stamp(first), _stamp(last), freq=offset_of(name)), "datetime64[s]")


def after(name: str, last: np.datetime64, count: int) -> np.ndarray:
    """The next `count` times of a frequency.

    Example:
        >>> [str(day)[:10] for day in after("B", np.datetime64("2024-01-05", "s"), 2)]
        ['2024-01-08', '2024-01-09']
    """
    if other := OTHER_DAY.match(name):
        return _same_day(last, int(other[1]) * np.arange(1, count + 1))
    import pandas as pd

    offset = offset_of(name)
    found = pd.date_range(_stamp(last), periods=count + 1, freq=offset)
    times = np.asarray(found, "datetime64[s]")
    return times[times > last][:count]


def season_of(name: str) -> int:
    """Periods per season: hours per day, days per week, weeks, months or quarters per year; otherwise 1.

    Example:
        >>> [season_of(name) for name in ("15min", "h", "D", "B", "W-SUN", "MS", "QE-DEC", "YS-JAN")]
        [96, 24, 7, 5, 52, 12, 4, 1]
    """
    if months := months_of(name):
        return 12 // months if 12 % months == 0 else 1
    offset = offset_of(name)
    kind = type(offset).__name__
    if kind == "BusinessDay":
        return 5 if offset.n == 1 else 1
    if kind == "Week":
        return 52 // offset.n
    try:
        seconds = offset.nanos // 10**9
    except ValueError:
        return 1
    days = seconds / 86400
    if days < 1:
        return 86400 // seconds if seconds and 86400 % seconds == 0 else 1
    return 52 if days == 7 else 26 if days == 14 else 7 if days == 1 else 1


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
    months = months_of(one)
    if months:
        return months == months_of(other)
    weeks = [about_seconds(name) // (7 * 86400) for name in (one, other)]
    return weeks[0] > 0 and weeks[0] == weeks[1] and not months_of(other)


def _infer_without_gaps(times: np.ndarray) -> str:
    """pandas' inference for a series without gaps; "" if it finds nothing."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 4 will return an offset instead of its name
        found: Any = pd.infer_freq(pd.DatetimeIndex(times))
    return str(getattr(found, "freqstr", found) or "")


def _candidates(times: np.ndarray) -> Iterator[str]:
    """Frequencies that contain all times, calendar frequencies first."""
    if len(times) < 2:
        return
    days = times.astype("datetime64[D]")
    seconds = np.diff(times).astype(np.int64)
    if len(np.unique(times - days)) == 1:  # at the same time of day
        yield from _monthly(days)
        if np.is_busday(days).all():
            yield "B"
    step = int(np.gcd.reduce(seconds))
    if (times[-1] - times[0]).astype(np.int64) // step <= (1 + HOLES) * len(times):
        yield fixed(step)


def _monthly(days: np.ndarray) -> Iterator[str]:
    """Months, quarters and years whose days have the same position in their month."""
    months = days.astype("datetime64[M]")
    step = int(np.gcd.reduce(np.diff(months).astype(np.int64)))
    if not step or (np.diff(months).astype(np.int64) == 0).any():
        return
    last = (months + 1).astype("datetime64[D]") - 1
    in_month = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    many = "" if step == 1 else str(step)
    if (in_month == 1).all():
        yield many + "MS"
    elif (days == last).all():
        yield many + "ME"
    elif (days == np.busday_offset(months.astype("datetime64[D]"), 0, "forward")).all():
        yield many + "BMS"
    elif (days == np.busday_offset(last, 0, "backward")).all():
        yield many + "BME"
    elif (in_month == np.minimum(in_month[0], (last - months.astype("datetime64[D]")).astype(int) + 1)).all():
        yield plural(step, "month")


def fixed(seconds: int) -> str:
    """The alias of a fixed step in seconds."""
    for unit, name in ((86400, "D"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds % unit == 0:
            return name if seconds == unit else f"{seconds // unit}{name}"
    raise AssertionError(seconds)


def _same_day(first: np.datetime64, months: np.ndarray) -> np.ndarray:
    """The same day and time some months later, or the last day of a shorter month."""
    begin = first.astype("datetime64[M]")
    start = (begin + months).astype("datetime64[D]")
    last = (begin + months + 1).astype("datetime64[D]") - 1
    day = np.minimum(start + (first.astype("datetime64[D]") - begin.astype("datetime64[D]")), last)
    return (day + (first - first.astype("datetime64[D]"))).astype("datetime64[s]")


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


def about_seconds(name: str) -> float:
    """Approximate length of a period, to reject a huge grid before building it."""
    if months := months_of(name):
        return months * 30 * 86400.0
    offset = offset_of(name)
    if type(offset).__name__ == "Week":
        return 7 * 86400.0 * offset.n
    try:
        return max(1.0, float(offset.nanos) / 1e9)
    except ValueError:  # business days
        return 86400.0 * offset.n


def _stamp(time: np.datetime64) -> Any:
    import pandas as pd

    return pd.Timestamp(time)
