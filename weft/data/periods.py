"""Align series with their frequency: missing periods become gaps, irregular rows raise an error.

Read next: series.py, which reads tables.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.data.calendar import OTHER_DAY, about_seconds, fixed, grid, infer, offset_of, same_period
from weft.errors import ConfigError, DataError
from weft.wording import plural

FREE_HOLES = 20.0
"""Maximum missing periods per row for a frequency given by the user."""


class Grid(NamedTuple):
    """All periods of a series, and which of them have rows."""

    frequency: str
    times: np.ndarray  # [P] every period from the first row to the last
    places: np.ndarray  # [T] index of each row's period


def aligned(place: str, times: np.ndarray, frequency: str | None = None) -> Grid:
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
    name = infer(times) if frequency is None else frequency
    if not name:
        if len(times) < 2:
            return Grid("", times, np.arange(len(times)))
        raise irregular(place, times)
    most = (1 + FREE_HOLES) * len(times) + 100
    if (times[-1] - times[0]).astype(np.int64) / about_seconds(name) > most:
        raise DataError(
            f"{place}: expected times at the frequency {name}, got {plural(len(times), 'row')} from "
            f"{shown(times[0])} to {shown(times[-1])}; give a table with rows at this frequency"
        )
    on = grid(name, times[0], times[-1])
    missing = ~np.isin(times, on)
    if missing.any():
        other = infer(times)
        if other and same_period(name, other):
            return aligned(place, times, other)
        first = times[missing][0]
        raise DataError(
            f"{place}: expected times at the frequency {name}, got {shown(first)}, which is not one of its "
            f"times; correct it, or give data.resample: mean (or sum, last) with data.frequency: {name}"
        )
    return Grid(name, on, np.searchsorted(on, times))


def resampled(
    times: np.ndarray, columns: np.ndarray, frequency: str, how: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Aggregate rows into periods: their times [P] and columns [P, F]; NaN for periods without values.

    Args:
        times: [T] increasing.
        columns: [T, F].
        frequency: a pandas alias.
        how: mean, sum, first, last, min or max for each column.

    Raises:
        ConfigError: the frequency is not a pandas alias.
    """
    import pandas as pd

    if OTHER_DAY.match(frequency):
        raise ConfigError(f"resample: expected a frequency with periods, such as MS or ME, got {frequency!r}")
    groups = pd.DataFrame(columns, index=pd.DatetimeIndex(times)).resample(offset_of(frequency))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about periods without values
        found = [
            groups[n].sum(min_count=1) if one == "sum" else getattr(groups[n], one)()
            for n, one in enumerate(how)
        ]
    whole = pd.concat(found, axis=1)
    return np.asarray(whole.index, "datetime64[s]"), whole.to_numpy(float)


def shown(time: np.datetime64) -> str:
    """A time as text; at midnight only the date."""
    return str(time).replace("T", " ").removesuffix(" 00:00:00")


def irregular(place: str, times: np.ndarray) -> DataError:
    """The error for times that fit no frequency."""
    seconds = np.diff(times).astype(np.int64)
    steps, counts = np.unique(seconds, return_counts=True)
    usual = int(steps[counts.argmax()])
    at = int(np.argmax(seconds != usual))
    share = 100 * counts.max() / len(seconds)
    return DataError(
        f"{place}: expected regular times, got {shown(times[at])} followed by {shown(times[at + 1])} "
        f"({share:.0f} % of the steps are {fixed(usual)}, {len(steps):,} different steps in all); give "
        f"data.frequency (such as {_coarse(usual)}) and data.resample: mean (or sum, last) to gather the "
        "rows into periods"
    )


def _coarse(seconds: int) -> str:
    """A simple period at least as long as a step."""
    for least, name in ((60, "min"), (3600, "h"), (86400, "D"), (7 * 86400, "W")):
        if seconds <= least:
            return name
    return "MS"
