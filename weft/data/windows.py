"""What a forecaster sees of series: windows of a past and a future, in three parts of time.

Every value column of every series is a series of its own; a window is (which one, where its future begins).
The parts follow each other in time; validation and test windows look back into the part before theirs, and
no window is ever dropped, not that of an incomplete last batch either. Read next: series.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.data.series import Series, Table
from weft.errors import ConfigError, DataError


class Scale(NamedTuple):
    """Mean and standard deviation of each series over its training part."""

    mean: np.ndarray  # [N]
    std: np.ndarray  # [N]

    def of(self, values: np.ndarray) -> np.ndarray:
        """Values [T, N] in this scale."""
        return (values - self.mean) / self.std


class Windows:
    """Scaled values of all series, and where windows are.

    Args:
        table: the series.
        split: three shares or three numbers of rows: training, validation, test.
        lookback, horizon: rows of a past and of a future.
        calendar: whether hour, weekday, day and month join the known covariates.
        targets: columns that are series to forecast; all where empty.
        channels: whether all columns of the table are seen beside, whatever is forecast; its past
            covariates always are.
        scales: of the known covariates and of the channels, where a run has them already.

    Attributes:
        names: of the N series.
        scale: see Scale.
        known_size: G, known covariates at each time.
        known_scale: how those of the table are scaled; the calendar is not.
        channels: how the columns that are seen beside are scaled; without any, none.

    Raises:
        DataError: a series that is too short, with both numbers; one without any value in training.
        ConfigError: a split that cannot be.
    """

    def __init__(
        self,
        table: Table,
        *,
        split: Sequence[float],
        lookback: int,
        horizon: int,
        calendar: bool,
        targets: Sequence[str] = (),
        channels: bool = False,
        scales: tuple[Scale, Scale] | None = None,
    ) -> None:
        self.table = table
        self.lookback = lookback
        self.horizon = horizon
        self.sees_all = channels
        self.names: list[str] = []
        self._values: list[np.ndarray] = []  # [T] scaled, NaN where missing
        self._filled: list[np.ndarray] = []  # [T] the same, the last value repeated where missing
        self._known: list[np.ndarray] = []  # [T, G]
        self._ends: list[tuple[int, int, int]] = []
        self._times: list[np.ndarray] = []  # [T]
        self._seen: list[np.ndarray] = []  # [T, C] scaled, without holes; the same array for all columns
        means, stds = [], []
        every_end = [_ends(series, split) for series in table.series]
        beside = [seen_beside(series, channels) for series in table.series]
        self.known_scale, self.channels = scales or (
            _pooled([series.known for series in table.series], every_end, table.known),
            _pooled(beside, every_end, (*(table.columns if channels else ()), *table.past)),
        )
        for series, ends, others in zip(table.series, every_end, beside, strict=True):
            if ends[0] < lookback + horizon:
                called = f"series {series.name!r}" if series.name else "the series"
                raise DataError(
                    f"{called}: expected at least {lookback + horizon} training rows for lookback {lookback} "
                    f"and horizon {horizon}, got {ends[0]}; shorten them, or give more data"
                )
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
        self.known_size = self._known[0].shape[1]

    def of(self, part: int) -> np.ndarray:
        """[N, 2] (series, first row of its future) of a part: 0 training, 1 validation, 2 test."""
        found = []
        for number, ends in enumerate(self._ends):
            begin = self.lookback if part == 0 else max(self.lookback, ends[part - 1])
            starts = np.arange(begin, ends[part] - self.horizon + 1)
            found.append(np.stack([np.full(len(starts), number), starts], 1))
        return np.concatenate(found).astype(np.int64)

    def take(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Past [B, L] without holes, future [B, H] with NaN where missing, covariates [B, L + H, G]."""
        past = [self._filled[n][start - self.lookback : start] for n, start in windows.tolist()]
        future = [self._values[n][start : start + self.horizon] for n, start in windows.tolist()]
        known = [
            self._known[n][start - self.lookback : start + self.horizon] for n, start in windows.tolist()
        ]
        return np.stack(past), np.stack(future), np.stack(known)

    def times(self, window: Sequence[int]) -> np.ndarray:
        """[L + H] of one window: series, first row of its future."""
        number, start = window
        return self._times[number][start - self.lookback : start + self.horizon]

    def training_values(self, number: int) -> np.ndarray:
        """[T] the training part of a series, in the units of the data."""
        values = self._values[number][: self._ends[number][0]]
        return values * self.scale.std[number] + self.scale.mean[number]  # type: ignore[no-any-return]

    def seen(self, windows: np.ndarray) -> np.ndarray:
        """The pasts [B, L, C] of the channels beside, without holes; C is 0 where none are seen."""
        return np.stack([self._seen[n][start - self.lookback : start] for n, start in windows.tolist()])


def _scale(train: np.ndarray, names: Sequence[str]) -> Scale:
    """Of each column [T, F] of the training rows; a column that never changes is divided by 1.

    Raises:
        DataError: a column without any value.
    """
    for column, name in zip(train.T, names, strict=True):
        if not np.isfinite(column).any():
            raise DataError(f"column {name}: no value in the training rows; remove the column")
    std = np.nanstd(train, 0)
    return Scale(np.nanmean(train, 0), np.where(std == 0, 1.0, std))


def _pooled(
    columns: Sequence[np.ndarray], ends: Sequence[tuple[int, int, int]], names: Sequence[str]
) -> Scale:
    """Of columns that all series share, over the training rows of all."""
    return _scale(np.concatenate([part[: end[0]] for part, end in zip(columns, ends, strict=True)]), names)


def seen_beside(series: Series, channels: bool) -> np.ndarray:
    """[T, C] what is seen of a series beside its target: its past covariates, or all its columns too."""
    return np.concatenate([series.values, series.past], 1) if channels else series.past


def filled(values: np.ndarray) -> np.ndarray:
    """The last value repeated where one is missing, 0 before the first.

    Example:
        >>> filled(np.array([np.nan, 2.0, np.nan, 3.0])).tolist()
        [0.0, 2.0, 2.0, 3.0]
    """
    places = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    return np.where(places >= 0, values[np.maximum(places, 0)], 0.0)


def all_filled(columns: np.ndarray) -> np.ndarray:
    """The same of each column of [T, C]."""
    return np.stack([filled(column) for column in columns.T], 1) if columns.shape[1] else columns


def covariates(times: np.ndarray, known: np.ndarray, calendar: bool) -> np.ndarray:
    """[T, G]: what a user knows ahead, scaled (its mean where missing), and the calendar from -0.5 to 0.5."""
    parts = [np.nan_to_num(known)]
    if calendar and times.dtype.kind == "M":
        days = times.astype("datetime64[D]")
        month = times.astype("datetime64[M]").astype(np.int64) % 12
        parts += [
            ((times - days).astype(np.int64) / 86400 - 0.5)[:, None],
            (((days.astype(np.int64) + 3) % 7) / 6 - 0.5)[:, None],
            ((days - days.astype("datetime64[M]")).astype(np.int64) / 30 - 0.5)[:, None],
            (month / 11 - 0.5)[:, None],
        ]
    return np.concatenate(parts, 1)


def _ends(series: Series, split: Sequence[float]) -> tuple[int, int, int]:
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
