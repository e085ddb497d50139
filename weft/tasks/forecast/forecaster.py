"""The forecast of one series by one trained model or several: scales its newest rows, and the forecast back.

Of several models it is the average; quantiles are calibrated on validation data.
Read next: predictor.py, tables of series; ../../data/windows.py, the same windows in training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.future import coming, joined
from weft.data.series import SeriesTable, TimeSeries, class_of, unknown_class
from weft.data.times import clock_of, shown, shown_times
from weft.data.windows import Scale, SeriesWindows
from weft.errors import ConfigError, DataError
from weft.figures.records import ForecastRecord
from weft.metrics.numbers import ForecastWindows
from weft.nn.forecasters.forecaster import Past
from weft.tasks.forecast.data import SeriesData, few, without_meaning
from weft.tasks.forecast.model import ROWS, ForecastNetwork, tensors
from weft.wording import kind_of, plural


class ForecastEnsemble(nn.Module):
    """The mean of several forecasts, and the mean of each quantile (unlike the quantiles of a mixture).

    Source: Lichtendahl, Grushka-Cockayne and Winkler 2013 (averaging quantiles).
    """

    def __init__(self, members: Sequence[ForecastNetwork], lookbacks: Sequence[int]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self._members = tuple(members)  # the same objects with their own type
        self.lookbacks = tuple(lookbacks)

    @property
    def has_quantiles(self) -> bool:
        """Whether all members have quantiles."""
        return all(member.has_quantiles for member in self._members)

    def best(self, past: Past) -> Tensor:
        """The mean forecast [B, H], in the scale of the series."""
        return torch.stack([member.best(read) for member, read in self._read(past)]).mean(0)

    def quantiles(self, past: Past, levels: Tensor) -> Tensor:
        """The mean of each quantile, [B, H, Q]."""
        return torch.stack([member.quantiles(read, levels) for member, read in self._read(past)]).mean(0)

    def _read(self, past: Past) -> list[tuple[ForecastNetwork, Past]]:
        """Each member and the part of the past that it reads."""
        first = [self.lookbacks[0] - lookback for lookback in self.lookbacks]
        return [
            (member, Past(past.values[:, at:], past.known[:, at:], past.which, past.seen[:, at:]))
            for member, at in zip(self._members, first, strict=True)
        ]


def check_joins(
    about: Mapping[str, Any], data: SeriesData, other: Mapping[str, Any], other_data: SeriesData
) -> None:
    """Check that two runs can forecast together."""
    if other_data.horizon != data.horizon:
        raise ConfigError(
            f"expected a horizon of {data.horizon} steps, as in this run, got {other_data.horizon}"
        )
    if other_data.lookback > data.lookback:
        raise ConfigError(
            f"it reads {other_data.lookback} rows, here {data.lookback}; name the run with most rows first"
        )
    for name in ("known", "past", "static", "categories", "calendar", "gaps", "transform"):
        if getattr(other_data, name) != getattr(data, name):
            raise ConfigError(f"it has another data.{name}; an ensemble needs the same")
    bases = {one.get("base") for one in (about, other)} - {None}
    if len(bases) > 1:
        raise ConfigError(
            f"its times are in another base ({', '.join(sorted(map(repr, bases)))}); train both alike"
        )
    for key, what in (
        ("names", "series"),
        ("columns", "columns"),
        ("known", "covariates"),
        ("classes", "classes in data.categories"),
        ("covariates", "scales of the covariates known ahead"),
        ("channels", "input columns (data.inputs)"),
        ("mean", "training rows, to tell by their mean"),
        ("std", "training rows, to tell by their deviation"),
    ):
        if other.get(key) != about.get(key):
            raise ConfigError(f"it has other {what}; an ensemble needs the same")


class CalibratedForecast(nn.Module):
    """A forecaster whose quantiles are calibrated on the validation part.

    At each step ahead, each quantile is shifted so that its share of the validation values lies below it. For
    a point forecaster, the forecast is shifted for each level. The shares are right as far as the future
    resembles the validation part.

    Source: Romano, Patterson and Candès 2019, "Conformalized quantile regression", here for each level alone.
    """

    has_quantiles = True

    def __init__(self, model: ForecastNetwork | ForecastEnsemble, windows: SeriesWindows) -> None:
        super().__init__()
        self.model = model
        self.windows = windows
        self._known: dict[tuple[float, ...], Tensor] = {}

    def best(self, past: Past) -> Tensor:
        """The forecast [B, H], unchanged."""
        return self.model.best(past)

    def quantiles(self, past: Past, levels: Tensor) -> Tensor:
        """Corrected quantiles [B, H, Q], increasing with the levels."""
        wanted = tuple(levels.tolist())
        if wanted not in self._known:
            self._known[wanted] = self._offsets(levels)
        return (self._raw_quantiles(past, levels) + self._known[wanted]).sort(-1).values

    def _raw_quantiles(self, past: Past, levels: Tensor) -> Tensor:
        if self.model.has_quantiles:
            return self.model.quantiles(past, levels)
        return self.model.best(past)[..., None].expand(-1, -1, len(levels))

    def _offsets(self, levels: Tensor) -> Tensor:
        """[H, Q] the shift that each quantile needs on the validation part."""
        chosen, errors = self.windows.of(1), []
        for at in range(0, len(chosen), ROWS):
            past, future = tensors(self.windows, chosen[at : at + ROWS], levels.device)
            with torch.no_grad():
                errors.append(future[..., None] - self._raw_quantiles(past, levels).double().cpu().numpy())
        found = conformal(np.concatenate(errors), levels.tolist())
        return torch.from_numpy(found).to(levels.device, levels.dtype)


AnyForecaster = ForecastNetwork | ForecastEnsemble | CalibratedForecast


def conformal(errors: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """[H, Q] the errors' [N, H, Q] quantile for each level, with the finite-sample correction.

    Example:
        >>> conformal(np.arange(9.0).reshape(9, 1, 1), [0.8])  # 8 of 9 + 1 values lie below
        array([[7.]])
    """
    found = np.zeros(errors.shape[1:])
    for step in range(errors.shape[1]):
        for at, level in enumerate(levels):
            values = np.sort(errors[:, step, at][np.isfinite(errors[:, step, at])])
            if not len(values):
                continue
            more = len(values) + 1
            rank = np.ceil(more * level - 1e-9) if level >= 0.5 else np.floor(more * level + 1e-9)
            found[step, at] = values[int(np.clip(rank, 1, len(values))) - 1]
    return found


LARGEST = 1e30
"""Upper limit for absolute values; float32 cannot hold sums of larger values' squares."""


class SeriesColumn(NamedTuple):
    """One column of a series to forecast."""

    series: TimeSeries
    column: int
    name: str


@dataclass(eq=False)
class SeriesForecaster:
    """Forecasts what follows a series, with quantiles of some levels."""

    model: AnyForecaster
    data: SeriesData
    about: Mapping[str, Any]
    levels: Sequence[float]

    def of_values(
        self,
        values: Sequence[float],
        name: str | None,
        known: Mapping[str, Sequence[float]],
        past: Mapping[str, Sequence[float]],
    ) -> SeriesColumn:
        """A table with one series without dates; see ForecastPredictor.predict."""
        if self.data.calendar or (self.about.get("channels") and self.data.inputs == "all"):
            raise ConfigError(
                "this model also reads the calendar or other columns; give it a table: a CSV file or its text"
            )
        array = _numbers(values)
        rows = len(array)
        classes = self.about.get("classes", {})
        beside = _given("known", self.data.columns.ahead, known, rows + self.data.horizon, classes)
        others = _given("past", self.data.past, past, rows, classes)
        series = TimeSeries("", np.arange(rows), array[:, None], beside[:rows], others, beside[rows:], "")
        return SeriesColumn(series, 0, name or self.about["names"][0])

    def chosen(self, table: SeriesTable, only: Sequence[str] = ()) -> list[SeriesColumn]:
        """The series of a table to forecast."""
        check_columns(table, self.about)
        found = [
            SeriesColumn(series, column, series.name or name)
            for series in table.series
            for column, name in enumerate(table.columns)
            if not self.data.targets or name in self.data.targets
        ]
        names = [one.name for one in found]
        missing = [name for name in only if name not in names]
        if missing:
            raise ConfigError(
                f"--series: {missing[0]!r} is not in the table; it has {', '.join(names)[:300]}"
            )
        return [one for one in found if not only or one.name in only]

    def remarks(self, chosen: Sequence[SeriesColumn]) -> list[str]:
        """Which series are new since the training, end before others or their table, or have idle times."""
        names, idle = self.about["names"], self.about.get("unmeasured", {})
        found = without_meaning({one.name: idle[one.name] for one in chosen if one.name in idle})
        new = [one.name for one in chosen if one.name not in names]
        if new and len(names) > 1:
            found.append(f"new since the training, so scaled by their own rows: {few(new)}")
        dated = [one for one in chosen if one.series.times.dtype.kind == "M"]
        latest = max((one.series.times[-1] for one in dated), default=None)
        early = [f"{one.name} ({shown(end)})" for one in dated if (end := one.series.times[-1]) != latest]
        if early:
            found.append(f"forecast from their own ends, before {shown(latest)}: {few(early)}")
        for one in chosen:
            measured = np.flatnonzero(np.isfinite(one.series.values[:, one.column]))
            if len(measured) and (empty := len(one.series.times) - 1 - int(measured[-1])):
                last = shown(one.series.times[measured[-1]])
                found.append(
                    f"{_called(one)} has no value after {last}, {plural(empty, 'row')} before the first row "
                    "that is forecast"
                )
            elif len(one.series.ahead) and not self.data.known:
                rows = plural(len(one.series.ahead), "last row")
                found.append(f"{_called(one)} has no value in the {rows} of the table, which are forecast")
        return found

    def why_not(self, one: SeriesColumn) -> str:
        """Why a series cannot be forecast; empty if it can."""
        try:
            self._check(one)
            self._ahead(one)
        except DataError as error:
            return str(error)
        return ""

    def forecast(self, one: SeriesColumn, *, quantiles: bool) -> ForecastRecord:
        """The forecast of a series, in the units of the data."""
        return record(self.model, *self.window(one), self.levels, quantiles=quantiles)._replace(actual=None)

    def window(self, one: SeriesColumn) -> tuple[SeriesWindows, np.ndarray]:
        """A series with its rows to forecast, and the window [1, 2] that has them as its future."""
        self._check(one)
        series, horizon = one.series, self.data.horizon

        def longer(values: np.ndarray) -> np.ndarray:
            return np.concatenate([values, np.full((horizon, values.shape[1]), np.nan)])

        ahead = series._replace(
            times=joined(series.times, coming(series, horizon)),
            values=longer(series.values),
            known=np.concatenate([series.known, self._ahead(one)]),
            past=longer(series.past),
        )
        return self.last_rows(one._replace(series=ahead))

    def last_rows(self, one: SeriesColumn) -> tuple[SeriesWindows, np.ndarray]:
        """A series, and the window [1, 2] that has its last rows as its future."""
        series, cut = one.series._replace(name=one.name), len(one.series.times) - self.data.horizon
        if cut < self.data.lookback:
            raise DataError(self._too_short(one, cut))
        columns = tuple(map(str, range(series.values.shape[1])))
        classes = self.about.get("classes", {})
        ahead = self.data.columns.ahead
        table = SeriesTable([series], columns, ahead, self.data.past, long=False, classes=classes)
        data = replace(self.data, targets=columns[one.column : one.column + 1])
        return data.windows(table, self.about, whole=True), np.array([[0, cut]])

    def _check(self, one: SeriesColumn) -> None:
        values = one.series.values[:, one.column]
        if not np.isfinite(values).any():
            raise DataError(f"{_called(one)}: expected a series of numbers, got one without any")
        if len(values) < self.data.lookback:
            raise DataError(self._too_short(one, len(values)))
        if np.nanmax(np.abs(values)) >= LARGEST:
            raise DataError(f"{_called(one)}: expected finite numbers below 1e30")

    def _too_short(self, one: SeriesColumn, rows: int) -> str:
        wanted = f"{_called(one)}: expected at least {plural(self.data.lookback, 'row')}"
        return f"{wanted}, got {max(0, rows)}; give a longer past"

    def _ahead(self, one: SeriesColumn) -> np.ndarray:
        """[H, G] the known covariates of the future."""
        series, names = one.series, self.data.known
        times = coming(series, self.data.horizon)
        ahead = np.full((len(times), series.known.shape[1]), np.nan)
        given = series.ahead[: len(times)]
        ahead[: len(given)] = given
        ahead[:, len(names) :] = series.known[-1, len(names) :]  # static
        missing = times[np.isnan(ahead).any(1)]
        if not len(missing):
            return ahead
        dated = times.dtype.kind == "M"
        first, last = (shown(times[at]) if dated else f"row {times[at] + 1}" for at in (0, -1))
        several = ", ".join(shown(at) if dated else f"row {at + 1}" for at in missing[:5])
        several += ", ..." if len(missing) > 5 else ""
        raise DataError(
            f"{_called(one)}: expected {', '.join(names)} for the {plural(len(times), 'row')} to forecast "
            f"({first} to {last}), {len(missing)} are missing ({several}); add rows with an empty target at "
            "the end of the table, or give a table of the future (--future FILE, in Python future=)"
        )


def forecast_windows(
    model: AnyForecaster, windows: SeriesWindows, chosen: np.ndarray, levels: Sequence[float] = ()
) -> ForecastWindows:
    """The forecasts of windows [N, 2], scaled: those that are predicted, and those that are scored."""
    device = next(model.parameters()).device
    past, _ = tensors(windows, chosen, device)
    with torch.no_grad():
        best, quantiles = model.best(past).double().cpu().numpy(), None
        if levels:
            found = model.quantiles(past, torch.tensor(levels, device=device))
            quantiles = found.double().cpu().numpy()
    if windows.positive:
        mean, std = windows.scales(chosen)
        zero = (windows.transform.lowest() - mean) / std  # [N, 1]
        best = np.maximum(best, zero)
        quantiles = None if quantiles is None else np.maximum(quantiles, zero[..., None])
    return ForecastWindows(best, quantiles, levels)


def in_units(
    found: ForecastWindows, windows: SeriesWindows, chosen: np.ndarray, *naive: np.ndarray
) -> ForecastWindows:
    """Forecasts in units, with the naive errors [N] of their windows [N, 2]."""
    scale = windows.scales(chosen)
    wide = Scale(scale.mean[..., None], scale.std[..., None])
    quantiles = None if found.quantiles is None else windows.in_units(found.quantiles, wide)
    return ForecastWindows(windows.in_units(found.best, scale), quantiles, found.levels, *naive)


def record(
    model: AnyForecaster,
    windows: SeriesWindows,
    chosen: np.ndarray,
    levels: Sequence[float],
    *,
    quantiles: bool,
) -> ForecastRecord:
    """The forecast of one window [1, 2] in units, with the true values."""
    found = in_units(forecast_windows(model, windows, chosen, levels if quantiles else ()), windows, chosen)
    ((number, start),), split = chosen.tolist(), windows.lookback
    times, values = windows.times((number, start)), windows.values(number)
    return ForecastRecord(
        windows.names[number],
        clock_of(times[:split]),
        values[start - split : start],
        clock_of(times[split:]),
        found.best[0],
        None if found.quantiles is None else found.quantiles[0],
        tuple(levels),
        values[start : start + windows.horizon],
        shown_times(times)[split:],
        windows.deviation(number, start),
    )


def check_columns(table: SeriesTable, about: Mapping[str, Any]) -> None:
    """Check that a table has the columns that a model with several inputs reads, in the same order."""
    beside = (about.get("channels") or {}).get("names", [])
    names = beside[: len(beside) - len(table.past)] or list(table.columns)
    if list(names) != list(table.columns):
        raise DataError(
            f"expected the columns {', '.join(names)} in this order, got {', '.join(table.columns)}"
        )


def _called(one: SeriesColumn) -> str:
    return f"series {one.name!r}" if one.name else "the series"


def _numbers(values: Any) -> np.ndarray:
    """The values [N] of a series; None is a missing one."""
    try:
        found = np.asarray(values)
        if found.ndim == 1 and found.dtype.kind in "iufO":
            return found.astype(np.float64)
    except (TypeError, ValueError):  # rows of several lengths, or other objects
        pass
    inside = (
        next((one for one in values if not isinstance(one, int | float)), None)
        if isinstance(values, list)
        else None
    )
    what = kind_of(values) if inside is None else f"one with {kind_of(inside)}"
    raise DataError(f"expected a list of numbers, oldest first, or a table, got {what}")


def _given(
    kind: str,
    names: Sequence[str],
    given: Mapping[str, Sequence[Any]],
    rows: int,
    classes: Mapping[str, Sequence[str]],
) -> np.ndarray:
    """Covariates as columns [rows, K], in the order of `names`."""
    if set(given) != set(names):
        raise DataError(
            f"{kind}: expected {', '.join(names) or 'none'}, got {', '.join(given) or 'none'}; give each "
            f"of them {rows} values"
        )
    for name in names:
        if len(given[name]) != rows:
            raise DataError(f"{kind}: expected {rows} values of {name}, got {len(given[name])}")
    columns = []
    for name in names:
        values, known = given[name], list(classes.get(name, ()))
        if other := [one for one in map(class_of, values) if known and one not in known]:
            raise DataError(f"{kind}: {unknown_class(name, other[0], known)}")
        values = [known.index(class_of(one)) for one in values] if known else values
        columns.append(np.asarray(values, dtype=np.float64))
    return np.stack(columns, 1) if columns else np.zeros((rows, 0))
