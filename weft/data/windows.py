"""Windows of past and future for forecasting, split by time into training, validation and test.

Every value column of every series counts as a series; a window is (series, first row of its future). The
parts are consecutive in time. Validation and test windows may look back into the part before, and no window
is dropped, not even in an incomplete last batch. Read next: series.py.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.data.series import SeriesTable, TimeSeries
from weft.errors import ConfigError, DataError


class Scale(NamedTuple):
    """Mean and standard deviation of each series over its training part."""

    mean: np.ndarray  # [N]
    std: np.ndarray  # [N]

    def of(self, values: np.ndarray) -> np.ndarray:
        """Scale values [T, N]."""
        return (values - self.mean) / self.std


class SeriesWindows:
    """Scaled values of all series, and their windows.

    Args:
        table: the series.
        split: three fractions or three numbers of rows: training, validation, test.
        lookback, horizon: rows of the past and of the future.
        calendar: add hour, weekday, day and month to the known covariates.
        targets: columns to forecast; all if empty.
        channels: give the model all columns of the table as extra inputs, not only the past covariates.
        scales: of the known covariates and of the channels, if a run has them already.
        trained: names of the series of a run, which number them; a new series has the number 0.

    Attributes:
        names: of the N series.
        numbers: [N] by which a model knows them.
        left_out: what is too short for a window or has no value, as text for the user; the others are read.
        scale: see Scale.
        known_size: G, number of known covariates, including the calendar.
        known_scale: scale of the table's known covariates; the calendar is not scaled.
        channels: scale of the extra input columns.

    Raises:
        DataError: every series is too short or has no value in the training part.
        ConfigError: an impossible split.
    """

    def __init__(
        self,
        table: SeriesTable,
        *,
        split: Sequence[float],
        lookback: int,
        horizon: int,
        calendar: bool,
        targets: Sequence[str] = (),
        channels: bool = False,
        scales: tuple[Scale, Scale] | None = None,
        trained: Sequence[str] = (),
    ) -> None:
        enough, self.left_out = _long_enough(table, split, lookback + horizon)
        if not enough:
            wanted = f"for lookback {lookback} and horizon {horizon}; shorten them, or give more data"
            raise DataError(f"{self.left_out[0]} {wanted}")
        table = table._replace(series=enough)
        self.table = table
        self.lookback = lookback
        self.horizon = horizon
        self.sees_all = channels
        self.names: list[str] = []
        self._values: list[np.ndarray] = []  # [T] scaled, NaN where missing
        self._filled: list[np.ndarray] = []  # [T] scaled, the last value repeated where missing
        self._known: list[np.ndarray] = []  # [T, G]
        self._ends: list[tuple[int, int, int]] = []
        self._times: list[Any] = []  # [T]
        self._seen: list[np.ndarray] = []  # [T, C] scaled, without gaps; shared by the columns of a series
        means, stds = [], []
        every_end = [_ends(series, split) for series in table.series]
        beside = [seen_beside(series, channels) for series in table.series]
        self.known_scale, self.channels = scales or (
            _pooled([series.known for series in table.series], every_end, table.known),
            _pooled(beside, every_end, (*(table.columns if channels else ()), *table.past)),
        )
        for series, ends, others in zip(table.series, every_end, beside, strict=True):
            known = covariates(series.times, self.known_scale.of(series.known), calendar)
            scale = _scale(series.values[: ends[0]], table.columns)
            every = scale.of(series.values)  # [T, F]
            seen = all_filled(self.channels.of(others))
            for column, name in enumerate(table.columns):
                if targets and name not in targets:
                    continue
                self.names.append(series.name or name)
                self._values.append(every[:, column])
                self._filled.append(filled(every[:, column]))
                self._known.append(known)
                self._seen.append(seen)
                self._ends.append(ends)
                self._times.append(series.times)
                means.append(float(scale.mean[column]))
                stds.append(float(scale.std[column]))
        self.scale = Scale(np.array(means), np.array(stds))
        order = {name: number for number, name in enumerate(trained or self.names)}
        self.numbers = np.array([order.get(name, 0) for name in self.names], np.int64)
        self.known_size = self._known[0].shape[1]

    def of(self, part: int) -> np.ndarray:
        """Windows [N, 2] (series, first row of the future) of a part: 0 training, 1 validation, 2 test."""
        found = []
        for number, ends in enumerate(self._ends):
            begin = self.lookback if part == 0 else max(self.lookback, ends[part - 1])
            starts = np.arange(begin, ends[part] - self.horizon + 1)
            found.append(np.stack([np.full(len(starts), number), starts], 1))
        return np.concatenate(found).astype(np.int64)

    def take(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Past [B, L] without gaps, future [B, H] with NaN where missing, known covariates [B, L + H, G]."""
        past = [self._filled[n][start - self.lookback : start] for n, start in windows.tolist()]
        future = [self._values[n][start : start + self.horizon] for n, start in windows.tolist()]
        known = [
            self._known[n][start - self.lookback : start + self.horizon] for n, start in windows.tolist()
        ]
        return np.stack(past), np.stack(future), np.stack(known)

    def times(self, window: Sequence[int]) -> Any:
        """The times [L + H] of one window."""
        number, start = window
        return self._times[number][start - self.lookback : start + self.horizon]

    def training_values(self, number: int) -> np.ndarray:
        """The training part [T] of a series in the units of the data."""
        values = self._values[number][: self._ends[number][0]]
        return values * self.scale.std[number] + self.scale.mean[number]  # type: ignore[no-any-return]

    def seen(self, windows: np.ndarray) -> np.ndarray:
        """The past [B, L, C] of the extra channels, without gaps; C is 0 without channels."""
        return np.stack([self._seen[n][start - self.lookback : start] for n, start in windows.tolist()])


def _long_enough(table: SeriesTable, split: Sequence[float], rows: int) -> tuple[list[TimeSeries], list[str]]:
    """The series with so many training rows and values in them, and why others are left out."""
    kept, left_out = [], []
    for series in table.series:
        end = _ends(series, split)[0]
        called = f"series {series.name!r}" if series.name else "the series"
        if end < rows:
            left_out.append(f"{called}: expected at least {rows} training rows, got {end}")
        elif table.long and not np.isfinite(series.values[:end]).any():
            left_out.append(f"{called}: expected values in the training rows, got none")
        else:
            kept.append(series)
    return kept, left_out


def _scale(train: np.ndarray, names: Sequence[str]) -> Scale:
    """The scale of training columns [T, F]; a constant column is divided by 1."""
    for column, name in zip(train.T, names, strict=True):
        if not np.isfinite(column).any():
            raise DataError(f"column {name}: no value in the training rows; remove the column")
    std = np.nanstd(train, 0)
    return Scale(np.nanmean(train, 0), np.where(std == 0, 1.0, std))


def _pooled(
    columns: Sequence[np.ndarray], ends: Sequence[tuple[int, int, int]], names: Sequence[str]
) -> Scale:
    """The scale of columns shared by all series, over all training rows."""
    return _scale(np.concatenate([part[: end[0]] for part, end in zip(columns, ends, strict=True)]), names)


def seen_beside(series: TimeSeries, channels: bool) -> np.ndarray:
    """[T, C] the extra channels of a series: its past covariates, and all its columns if `channels`."""
    return np.concatenate([series.values, series.past], 1) if channels else series.past


def filled(values: np.ndarray) -> np.ndarray:
    """Fill missing values with the last value before them, or 0 at the beginning.

    Example:
        >>> filled(np.array([np.nan, 2.0, np.nan, 3.0])).tolist()
        [0.0, 2.0, 2.0, 3.0]
    """
    places = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    return np.where(places >= 0, values[np.maximum(places, 0)], 0.0)


def all_filled(columns: np.ndarray) -> np.ndarray:
    """Like `filled`, for each column of [T, C]."""
    return np.stack([filled(column) for column in columns.T], 1) if columns.shape[1] else columns


def covariates(times: Any, known: np.ndarray, calendar: bool) -> np.ndarray:
    """[T, G]: the scaled known covariates (0, the mean, where missing) and the calendar from -0.5 to 0.5."""
    parts = [np.nan_to_num(known)]
    if calendar and times.dtype.kind == "M":
        import pandas as pd

        clock = pd.DatetimeIndex(times).tz_localize(None)  # of the zone
        hours = (clock - clock.normalize()) / pd.Timedelta(days=1)
        columns = (hours, clock.day_of_week / 6, (clock.day - 1) / 30, (clock.month - 1) / 11)
        parts += [np.asarray(column, np.float64)[:, None] - 0.5 for column in columns]
    return np.concatenate(parts, 1)


def _ends(series: TimeSeries, split: Sequence[float]) -> tuple[int, int, int]:
    rows = len(series.times)
    if len(split) != 3 or any(one < 0 for one in split) or not split[0]:
        raise ConfigError(f"split: expected three shares or three numbers of rows, got {list(split)}")
    if sum(split) <= 1 + 1e-9:
        bounds = np.cumsum(split)
        return int(rows * bounds[0] + 0.5), int(rows * bounds[1] + 0.5), int(rows * bounds[2] + 0.5)
    counts = [int(one) for one in split]
    if sum(counts) > rows:
        raise ConfigError(f"split: expected at most {rows} rows, the size of the data, got {sum(counts)}")
    return counts[0], counts[0] + counts[1], sum(counts)
