"""Align series with their frequency: missing periods become gaps, irregular rows raise an error.

Read next: series.py, which reads tables.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.data.calendar import (
    OTHER_DAY,
    about_seconds,
    alias_of,
    beyond,
    grid,
    infer,
    months_of,
    offset_of,
    seconds_between,
)
from weft.data.times import shown
from weft.errors import ConfigError, DataError
from weft.wording import plural

if TYPE_CHECKING:
    import pandas as pd

FREE_HOLES = 20.0
"""Maximum missing periods per row for a frequency given by the user, and for whole numbers."""


MOST_VALUES = 30_000_000
"""Maximum periods times columns that rows of a series are aggregated into; 57 years of minutes."""


class Grid(NamedTuple):
    """All periods of a series, and which of them have rows."""

    frequency: str
    times: "pd.DatetimeIndex | np.ndarray"  # [P] every period from the first row to the last
    places: np.ndarray  # [T] index of each row's period


def aligned(place: str, times: Any, frequency: str | None = None) -> Grid:
    """Align the times of a series with its frequency.

    Args:
        place: named in errors.
        times: [T] increasing.
        frequency: the required frequency, up to the choice of the first or last day of a month; None infers
            it.

    Raises:
        DataError: the times are irregular or do not fit the frequency.
        ConfigError: unknown frequency.
    """
    most = (1 + FREE_HOLES) * len(times) + 100
    if times.dtype.kind != "M":
        return _steps(place, times, most)
    name = infer(times) if frequency is None else frequency
    if not name:
        if len(times) < 2:
            return Grid("", times, np.arange(len(times)))
        raise irregular(place, times)
    if seconds_between(times) / about_seconds(name) > most:
        raise DataError(
            f"{place}: expected times at the frequency {name}, got {plural(len(times), 'row')} from "
            f"{shown(times[0])} to {shown(times[-1])}; give a table with rows at this frequency"
        )
    on = grid(name, times[0], times[-1])
    missing = ~times.isin(on)
    if missing.any():
        other = infer(times)
        if other and _alike(name, other):  # months that begin, and months that end
            return aligned(place, times, other)
        first = times[missing][0]
        raise DataError(
            f"{place}: expected times at the frequency {name}, got {shown(first)}, which is not one of its "
            f"times; correct it, or give data.resample: mean (or sum, last) with data.frequency: {name}"
        )
    return Grid(name, on, on.get_indexer(times))


def resampled(times: Any, columns: np.ndarray, frequency: str, how: Sequence[str]) -> tuple[Any, np.ndarray]:
    """Aggregate rows into periods: their times [P] and columns [P, F]; NaN for periods without values.

    Args:
        times: [T] in order; several rows may have the same time.
        columns: [T, F].
        frequency: a pandas alias.
        how: mean, sum, first, last, min or max for each column.

    Raises:
        ConfigError: the frequency is not a pandas alias, or the times are no dates.
        DataError: a period ends outside pandas' calendar, or there are too many.
    """
    import pandas as pd

    if times.dtype.kind != "M":
        raise ConfigError("resample: expected dates or times, got whole numbers; leave data.resample out")
    if OTHER_DAY.match(frequency):
        raise ConfigError(f"resample: expected a frequency with periods, such as MS or ME, got {frequency!r}")
    count = seconds_between(times) / about_seconds(frequency)
    if (values := count * columns.shape[1]) > MOST_VALUES:
        raise DataError(
            f"expected periods with {MOST_VALUES:,} values at most, got {values:,.0f} at the frequency "
            f"{frequency} from {shown(times[0])} to {shown(times[-1])}; give a longer data.frequency, or "
            "correct the times"
        )
    try:
        groups = pd.DataFrame(columns, index=times).resample(offset_of(frequency))
    except (ValueError, OverflowError):
        raise beyond(times[-1], frequency) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about periods without values
        found = [
            groups[n].sum(min_count=1) if one == "sum" else getattr(groups[n], one)()
            for n, one in enumerate(how)
        ]
    whole = pd.concat(found, axis=1)
    return whole.index, whole.to_numpy(float)


def step_of(steps: np.ndarray) -> int:
    """The distance of whole numbers [T] that count periods.

    Example:
        >>> step_of(np.array([0, 10, 40]))
        10
    """
    return int(np.gcd.reduce(np.diff(steps))) if len(steps) > 1 else 1


def irregular(place: str, times: "pd.DatetimeIndex") -> DataError:
    """The error for times that fit no frequency."""
    import pandas as pd

    between = pd.Series(times.as_unit("us")).diff()[1:]  # nanoseconds overflow after 292 years
    counts = between.value_counts()
    usual = counts.index[0]
    at = int((between != usual).to_numpy().argmax())
    zoned = "" if times.tz is None else ", or data.zone if they are days of another time zone"
    return DataError(
        f"{place}: expected regular times, got {shown(times[at])} followed by {shown(times[at + 1])} "
        f"({100 * counts.iloc[0] / len(between):.0f} % of the steps are {alias_of(usual)}, {len(counts):,} "
        f"different steps in all); give data.frequency (such as {_coarse(usual.total_seconds())}) and "
        f"data.resample: mean (or sum, last) to gather the rows into periods{zoned}"
    )


def _alike(one: str, other: str) -> bool:
    """Whether periods have the same number of months, or of weeks."""
    if months := months_of(one):
        return months == months_of(other)
    seconds = about_seconds(one)
    return seconds % (7 * 86400) == 0 and seconds == about_seconds(other) and not months_of(other)


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
    periods = {"min": 60, "h": 3600, "D": 86400, "W": 7 * 86400}
    return next((name for name, least in periods.items() if seconds <= least), "MS")
