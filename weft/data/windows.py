"""Windows of past and future for forecasting, split by time into training, validation and test.

Every value column of every series counts as a series; a window is (series, first row of its future). The
parts are consecutive in time. Validation and test windows may look back into the part before, and no window
is dropped, not even in an incomplete last batch. Read next: series.py.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from weft.data.calendar import unmeasured
from weft.data.series import SeriesTable, TimeSeries
from weft.data.values import filled
from weft.errors import ConfigError, DataError

TransformName = Literal["log", "log1p", "box-cox"]


class PowerTransform(NamedTuple):
    """The transform of Box and Cox: ((y + shift)^power - 1) / power, or log(y + shift) for the power 0."""

    power: float = 1.0  # 1 without a shift leaves values as they are
    shift: float = 0.0

    def of(self, values: np.ndarray, called: str) -> np.ndarray:
        """Values transformed."""
        if self == PowerTransform():
            return values
        if (values <= -self.shift).any():
            least = "from 0 on" if self.shift else "above 0"
            what = f"transform: expected values {least} in {called}, got {np.nanmin(values):g}"
            raise DataError(f"{what}; leave data.transform out{'' if self.shift else ', or write log1p'}")
        return np.log(values + self.shift) if not self.power else (values**self.power - 1) / self.power

    def lowest(self) -> float:
        """What 0 becomes."""
        if self == PowerTransform() or self.shift:
            return 0.0
        return -1 / self.power if self.power else -math.inf

    def back(self, values: np.ndarray) -> np.ndarray:
        """Transformed values in their units."""
        if self == PowerTransform():
            return values
        if not self.power:
            return np.exp(values) - self.shift
        return np.maximum(values * self.power + 1, 0) ** (1 / self.power)


def power_of(name: TransformName | None, parts: Sequence[np.ndarray]) -> PowerTransform:
    """The transform of a name; box-cox has the power from 0 to 1 that is most likely on parts [T, F]."""
    if name != "box-cox":
        return PowerTransform() if name is None else PowerTransform(0.0, float(name == "log1p"))
    columns = [column[np.isfinite(column)] for part in parts for column in part.T]

    def likelihood(power: float) -> float:
        spread = [math.log(float(PowerTransform(power).of(y, "").var()) or 1.0) for y in columns]
        parts = zip(columns, spread, strict=True)
        return sum((power - 1) * float(np.log(y).sum()) - len(y) / 2 * one for y, one in parts)

    PowerTransform(0.0).of(np.concatenate(columns), "the series")
    return PowerTransform(max((n / 20 for n in range(20)), key=likelihood))


class Scale(NamedTuple):
    """Mean and standard deviation of each series over its training part."""

    mean: np.ndarray  # [N]
    std: np.ndarray  # [N]

    def of(self, values: np.ndarray) -> np.ndarray:
        """Scale values [T, N]."""
        return (values - self.mean) / self.std


class TrainedScales(NamedTuple):
    """What a run knows of the series of its training."""

    names: Sequence[str]  # of the N series
    series: Scale
    known: Scale  # of the known covariates
    channels: Scale  # of the extra input columns
    fill: int = 1  # how many rows before a missing value is the one in its place
    transform: PowerTransform = PowerTransform()


class WindowedSeries(NamedTuple):
    """One column of values, as windows read it."""

    name: str
    values: np.ndarray  # [T] NaN where missing
    level: np.ndarray  # [T] the same, transformed
    filled: np.ndarray  # [T] of these, the last one repeated where missing
    scale: Scale  # [T + 1] of the window whose future begins at each row
    known: np.ndarray  # [T, G]
    covered: np.ndarray  # [T] bool, whether no known covariate is missing
    seen: np.ndarray  # [T, C] scaled, without gaps; shared by the columns of a table
    times: Any  # [T]
    ends: tuple[int, int, int]


class SeriesWindows:
    """Values of all series, and their scaled windows; settings are those of a recipe's data and model.

    Args:
        split: three fractions or three numbers of rows; None if every window is a test.
        season: rows per season, for missing values of the past.
        trained: of a run. A series that is new since its training has the number 0, and each of its windows
            the scale of all rows before its future.

    Attributes:
        numbers: [N] by which a model knows them.
        left_out: what is too short for a window or has no value, as text for the user; the others are read.
        scale: see Scale; of a new series, that of all its rows.
        known_size: G, number of known covariates, including the calendar.
        fill: a missing value of the past is the last one before it (1), or that of the last season (its
            rows), whichever is closer to the training part.
    """

    def __init__(
        self,
        table: SeriesTable,
        *,
        split: Sequence[float] | None,
        lookback: int,
        horizon: int,
        calendar: bool,
        targets: Sequence[str] = (),
        channels: bool = False,
        season: int = 1,
        positive: bool = False,
        gaps: bool = False,
        transform: TransformName | None = None,
        trained: TrainedScales | None = None,
    ) -> None:
        enough, self.left_out = _long_enough(table, split, lookback, horizon)
        table = table._replace(series=enough)
        self.table = table
        self.lookback = lookback
        self.horizon = horizon
        self.sees_all = channels
        self.positive = positive
        self.gaps = 0
        every_end = [_ends(series, split) for series in table.series]
        beside = [seen_beside(series, channels) for series in table.series]
        read = (*(table.columns if channels else ()), *table.past)
        scales = trained or _fitted(table, every_end, beside, read, targets, season, transform)
        self.known_scale, self.channels, self.fill, self.transform = scales[2:]
        self._series: list[WindowedSeries] = []
        order = {name: number for number, name in enumerate(trained.names)} if trained else {}
        for series, ends, others in zip(table.series, every_end, beside, strict=True):
            known = one_hot(self.known_scale.of(series.known), table.known, table.classes)
            known = covariates(series.times, known, calendar)
            covered = np.isfinite(series.known).all(1)
            seen = one_hot(all_filled(self.channels.of(others)), read, table.classes)
            for column, name in enumerate(table.columns):
                if targets and name not in targets:
                    continue
                values, called = series.values[:, column], series.name or name
                level = self.transform.of(values, called)
                if trained is None:
                    scale = _scale(level[: ends[0], None], [name])
                else:
                    scale = _known(order.get(called), trained) or _scale_before(level)
                scale = Scale(*(np.broadcast_to(side, len(values) + 1) for side in scale))
                whole, times, ahead = filled(level, np.nan, self.fill), series.times, known
                if gaps:
                    holes = np.isnan(np.concatenate([values[:, None], others], 1))
                    ahead, self.gaps = np.concatenate([known, holes], 1), holes.shape[1]
                one = WindowedSeries(called, values, level, whole, scale, ahead, covered, seen, times, ends)
                self._series.append(one)
        self.names = [one.name for one in self._series]
        if positive:
            _check_positive(self._series)
        self.new = [name for name in self.names if trained and name not in order]
        self.scale = Scale(*np.array([[side[-1] for side in one.scale] for one in self._series]).T)
        order = order or {name: number for number, name in enumerate(self.names)}
        self.numbers = np.array([order.get(name, 0) for name in self.names], np.int64)
        self.known_size = self._series[0].known.shape[1]

    def of(self, part: int) -> np.ndarray:
        """Windows [N, 2] (series, first row of the future) of a part: 0 training, 1 validation, 2 test."""
        found = []
        for number, one in enumerate(self._series):
            begin = self.lookback if part == 0 else max(self.lookback, one.ends[part - 1])
            starts = np.arange(begin, one.ends[part] - self.horizon + 1)
            found.append(np.stack([np.full(len(starts), number), starts], 1))
        return np.concatenate(found).astype(np.int64)

    def answerable(self, windows: np.ndarray) -> np.ndarray:
        """[N] bool: whether there is a value before the future, and all of its known covariates."""
        found = [
            np.isfinite(one.filled[start - 1]) and one.covered[start : start + self.horizon].all()
            for one, start in self._each(windows)
        ]
        return np.array(found, bool)

    @property
    def said(self) -> str:
        """What stands for missing values of the past, for the user; empty if none is missing."""
        if all(np.isfinite(one.values).all() for one in self._series):
            return ""
        before = f"the one {self.fill} rows before" if self.fill > 1 else "the one before"
        return f"a missing value of the past is read as {before}; one to forecast adds no loss"

    def unmeasured(self) -> dict[str, str]:
        """The times of day and weekdays without a value in training, of each series that has some."""
        found = {
            one.name: unmeasured(one.times[: one.ends[0]], one.values[: one.ends[0]]) for one in self._series
        }
        return {name: text for name, text in found.items() if text}

    def with_gaps(self, windows: np.ndarray) -> np.ndarray:
        """[N] bool: whether a value of the future is missing."""
        found = np.zeros(len(windows), bool)
        for number in np.unique(windows[:, 0]):
            holes = np.concatenate([[0], np.cumsum(~np.isfinite(self.values(number)))])
            own = windows[:, 0] == number
            found[own] = holes[windows[own, 1] + self.horizon] > holes[windows[own, 1]]
        return found

    def take(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Past [B, L] without gaps, future [B, H] with NaN where missing, known covariates [B, L + H, G]."""
        each, scale = self._each(windows), self.scales(windows)
        past = [one.filled[start - self.lookback : start] for one, start in each]
        future = [one.level[start : start + self.horizon] for one, start in each]
        known = np.stack([one.known[start - self.lookback : start + self.horizon] for one, start in each])
        known[:, self.lookback :, known.shape[2] - self.gaps :] = 0  # gaps of the future are unknown
        return np.nan_to_num(scale.of(np.stack(past))), scale.of(np.stack(future)), known

    def scales(self, windows: np.ndarray) -> Scale:
        """The scale of each window, means and deviations [B, 1]."""
        found = [(one.scale.mean[start], one.scale.std[start]) for one, start in self._each(windows)]
        return Scale(*np.array(found).T[..., None])

    def deviation(self, number: int, start: int) -> float:
        """The deviation of a window's series in units; of a transformed one, that of its rows."""
        one = self._series[number]
        return float(one.scale.std[start] if one.level is one.values else np.nanstd(one.values))

    def in_units(self, values: np.ndarray, scale: Scale) -> np.ndarray:
        """Scaled values in the units of the data."""
        return self.transform.back(values * scale.std + scale.mean)

    def times(self, window: Sequence[int]) -> Any:
        """The times [L + H] of one window."""
        number, start = window
        return self._series[number].times[start - self.lookback : start + self.horizon]

    def values(self, number: int) -> np.ndarray:
        """The rows [T] of a series in the units of the data."""
        return self._series[number].values

    def training_values(self, number: int) -> np.ndarray:
        """The training part of them."""
        return self.values(number)[: self._series[number].ends[0]]

    def seen(self, windows: np.ndarray) -> np.ndarray:
        """The past [B, L, C] of the extra channels, without gaps; C is 0 without channels."""
        return np.stack([one.seen[start - self.lookback : start] for one, start in self._each(windows)])

    def in_training(self, windows: np.ndarray, trained: "SeriesWindows") -> int:
        """How many windows begin their future at a time in the training part of others."""
        ends = {one.name: one.times[: one.ends[0]] for one in trained._series if one.times.dtype.kind == "M"}
        found = 0
        for number, one in enumerate(self._series):
            if len(times := ends.get(one.name, ())):
                futures = one.times[windows[windows[:, 0] == number, 1]]
                if (getattr(times, "tz", None) is None) != (getattr(futures, "tz", None) is None):
                    times, futures = (each.tz_localize(None) for each in (times, futures))  # as clocks show
                found += int(((futures >= times[0]) & (futures <= times[-1])).sum())
        return found

    def _each(self, windows: np.ndarray) -> list[tuple[WindowedSeries, int]]:
        """The series of each window, and the first row of its future."""
        return [(self._series[number], start) for number, start in windows.tolist()]


def _long_enough(
    table: SeriesTable, split: Sequence[float] | None, lookback: int, horizon: int
) -> tuple[list[TimeSeries], list[str]]:
    """The series with so many training rows and values in them, and why others are left out."""
    rows = lookback + horizon
    kept, left_out, what = [], [], "rows" if split is None else "training rows"
    for series in table.series:
        called = f"series {series.name!r}" if series.name else "the series"
        if len(table.series) > 1 and split is not None and 1 + 1e-9 < sum(split) > len(series.times):
            left_out.append(f"{called}: expected {sum(split):g} rows, as split has, got {len(series.times)}")
            continue
        end = _ends(series, split)[0 if split is not None else -1]
        if end < rows:
            left_out.append(f"{called}: expected at least {rows} {what}, got {end}")
        elif table.long and not np.isfinite(series.values[:end]).any():
            left_out.append(f"{called}: expected values in the {what}, got none")
        else:
            kept.append(series)
    if not kept:
        wanted = f"for lookback {lookback} and horizon {horizon}; shorten them, or give more data"
        raise DataError(f"{left_out[0]} {wanted}")
    return kept, left_out


def _known(place: int | None, trained: TrainedScales) -> Scale | None:
    """The scale of a series in the training of a run, by its place there; None if it is new."""
    return None if place is None else Scale(*(side[place, None] for side in trained.series))


def _check_positive(series: Sequence[WindowedSeries]) -> None:
    for one in series:
        if (one.values < 0).any():
            least = f"{np.nanmin(one.values):g} in {one.name}"
            raise ConfigError(f"positive: expected no value below 0, got {least}; leave it out")


def _scale(train: np.ndarray, names: Sequence[str]) -> Scale:
    """The scale of training columns [T, F]; a constant column is divided by 1."""
    for column, name in zip(train.T, names, strict=True):
        if not np.isfinite(column).any():
            raise DataError(f"column {name}: no value in the training rows; remove the column")
    std = np.nanstd(train, 0)
    return Scale(np.nanmean(train, 0), np.where(std == 0, 1.0, std))


def _scale_before(values: np.ndarray) -> Scale:
    """The scale of the values [T] before each row, and of all: [T + 1], NaN before the first value."""
    import pandas as pd

    before = pd.Series(np.concatenate([[np.nan], values])).expanding()
    std = before.std(ddof=0).to_numpy()
    return Scale(before.mean().to_numpy(), np.where(std == 0, 1.0, std))


def _fitted(
    table: SeriesTable,
    ends: Sequence[tuple[int, int, int]],
    beside: Sequence[np.ndarray],
    read: Sequence[str],
    targets: Sequence[str],
    season: int,
    transform: TransformName | None,
) -> TrainedScales:
    """What the training parts tell, without the scales of the series."""
    parts = [one.values[: end[0]] for one, end in zip(table.series, ends, strict=True)]
    kept = [not targets or name in targets for name in table.columns]
    known = _pooled([one.known for one in table.series], ends, table, table.known)
    channels, fill = _pooled(beside, ends, table, read), _fill_of(parts, season)
    power = power_of(transform, [part[:, kept] for part in parts])
    return TrainedScales((), Scale(np.zeros(0), np.ones(0)), known, channels, fill, power)


def _pooled(
    columns: Sequence[np.ndarray],
    ends: Sequence[tuple[int, int, int]],
    table: SeriesTable,
    names: Sequence[str],
) -> Scale:
    """The scale of columns shared by all series, over all training rows; classes keep their numbers."""
    whole = np.concatenate([part[: end[0]] for part, end in zip(columns, ends, strict=True)])
    found, classes = _scale(whole, names), [name in table.classes for name in names]
    return Scale(np.where(classes, 0.0, found.mean), np.where(classes, 1.0, found.std))


def one_hot(columns: np.ndarray, names: Sequence[str], classes: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Columns [T, C] with a column of 0 and 1 for each class in place of those of classes."""
    parts = [
        column[:, None] == np.arange(len(classes[name])) if name in classes else column[:, None]
        for column, name in zip(columns.T, names, strict=True)
    ]
    return np.concatenate([columns[:, :0], *parts], 1)


def seen_beside(series: TimeSeries, channels: bool) -> np.ndarray:
    """[T, C] the extra channels of a series: its past covariates, and all its columns if `channels`."""
    return np.concatenate([series.values, series.past], 1) if channels else series.past


def _fill_of(parts: Sequence[np.ndarray], season: int) -> int:
    """1 or the season, whichever has the smaller absolute errors on training parts [T, F]."""
    errors = np.zeros(2)
    for values in (column for part in parts for column in part.T if 1 < season < len(part)):
        before = [np.concatenate([np.full(n, np.nan), filled(values, np.nan, n)[:-n]]) for n in (1, season)]
        apart = np.abs(values - np.stack(before))
        both = np.isfinite(apart).all(0)
        if both.any() and (deviation := np.nanstd(values)):
            errors += apart[:, both].sum(1) / deviation
    return season if errors[1] < errors[0] else 1


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


def _ends(series: TimeSeries, split: Sequence[float] | None) -> tuple[int, int, int]:
    rows = len(series.times)
    if split is None:
        return 0, 0, rows
    if len(split) != 3 or any(one < 0 for one in split) or not split[0]:
        raise ConfigError(f"split: expected three shares or three numbers of rows, got {list(split)}")
    if sum(split) <= 1 + 1e-9:
        bounds = np.cumsum(split)
        return int(rows * bounds[0] + 0.5), int(rows * bounds[1] + 0.5), int(rows * bounds[2] + 0.5)
    counts = [int(one) for one in split]
    if sum(counts) > rows:
        raise ConfigError(f"split: expected at most {rows} rows, the size of the data, got {sum(counts)}")
    return counts[0], counts[0] + counts[1], sum(counts)
