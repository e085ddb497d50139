"""A trained forecaster at work: the next rows of series, as numbers and as quantiles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from weft.data.future import coming
from weft.data.periods import shown
from weft.data.series import Series, Table
from weft.data.windows import Scale, all_filled, covariates, filled, seen_beside
from weft.errors import ConfigError, DataError
from weft.nn.forecasters.forecaster import Past
from weft.tasks.forecast.about import scales_of
from weft.tasks.forecast.calibration import Calibrated
from weft.tasks.forecast.data import SeriesData
from weft.tasks.forecast.ensemble import Together
from weft.tasks.forecast.model import Forecast
from weft.tasks.forecast.written import line, shown_times
from weft.tasks.whole import Answer

Forecaster = Forecast | Together | Calibrated


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """What `weft predict` writes: a recipe's section `decoding`.

    Args:
        levels: of the quantiles that --scores adds.
        conformal: calibrate the quantiles on the validation part of the training data, which must be there
            (calibration.py); a point forecaster has quantiles then.
    """

    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    conformal: bool = False

    def __post_init__(self) -> None:
        if not self.levels or not all(0 < one < 1 for one in self.levels):
            raise ConfigError(f"levels: expected numbers between 0 and 1, got {list(self.levels)}")


class Look(NamedTuple):
    """What a picture of a forecast needs, in the units of the data."""

    name: str
    past_times: np.ndarray
    past: np.ndarray
    times: np.ndarray
    best: np.ndarray
    quantiles: np.ndarray | None  # [H, Q]
    levels: tuple[float, ...]
    came: np.ndarray | None = None  # what was measured then, where that is known


class SeriesForecaster:
    """Forecasts what comes after series.

    Args:
        model: in evaluation mode; several together too.
        data: lookback, horizon, columns.
        about: names and scales of the series that it was trained on.
        decoding: which quantiles.
    """

    def __init__(self, model: Forecaster, data: SeriesData, about: dict[str, Any], decoding: Horizon) -> None:
        self.model = model
        self.data = data
        self.about = about
        self.decoding = decoding

    def predict(
        self,
        values: Sequence[float],
        name: str | None = None,
        *,
        known: Mapping[str, Sequence[float]] = {},
        past: Mapping[str, Sequence[float]] = {},
    ) -> list[float]:
        """The next `horizon` values of one series.

        Args:
            values: at least `lookback` of them, oldest first.
            name: of the series, as in training; the first one's scale serves where None.
            known: covariates that are known ahead by their name, `horizon` values more than `values`.
            past: covariates whose future is not known, as many values as `values`.

        Raises:
            DataError: too few values; covariates that are missing, too few or too many.
            ConfigError: a model that needs dates or other series; use `rows` with a table.
        """
        if self.data.calendar or (self._channels and self.data.inputs == "all"):
            raise ConfigError(
                "this model reads the calendar or other columns beside the numbers; give it a table: a CSV "
                "file or its text, in Python rows(table, quantiles)"
            )
        array = np.asarray(values, dtype=np.float64)
        rows = len(array)
        beside = _given("known", self.data.known, known, rows + self.data.horizon)
        others = _given("past", self.data.past, past, rows)
        times = np.arange(rows)
        series = Series("", times, array[:, None], beside[:rows], others, beside[rows:], "")
        look = self._look(series, 0, name or self.about["names"][0], False)
        return [float(value) for value in look.best]

    def rows(
        self, table: Table, quantiles: bool, *, bands: bool = False, only: Sequence[str] = ()
    ) -> Iterator[Answer]:
        """Lines of a CSV: its header, then the next rows of each series.

        Args:
            table: with the columns that the model was trained on; covariates that are known ahead stand in
                rows at the end without a value, or were put beside by SeriesData.future.
            quantiles: whether quantiles are written too.
            bands: whether what is drawn has quantiles where the model has some, written or not.
            only: names of the series to forecast; all where empty.

        A series that cannot be answered has no rows; the header's answer says why, a line each.

        Raises:
            ConfigError: a series that is not there; quantiles of a model without.
            DataError: of every series: a past that is too short; a covariate that is known ahead and is not
                given.
        """
        check_columns(table, self.about)
        if quantiles and not self.model.has_quantiles:
            raise ConfigError(
                "a point forecast has no quantiles; calibrate it with --set conformal=true, or train with "
                "the head normal, student or quantile"
            )
        asked = self._asked(table, only)
        wrong = {name: why for series, _, name in asked if (why := self._missing(series, name))}
        if asked and len(wrong) == len(asked):  # refused before anything is written
            raise DataError(wrong[asked[0][2]])
        extra = [f"q{level:g}" for level in self.decoding.levels] if quantiles else []
        yield Answer(line(["unique_id", "ds", "y", *extra]), wrong="\n".join(wrong.values()))
        for series, column, name in [one for one in asked if one[2] not in wrong]:
            look = self._look(series, column, name, quantiles or (bands and self.model.has_quantiles))
            times = shown_times([*look.past_times, *look.times], table.zone)[len(look.past_times) :]
            for row, time in enumerate(times):
                found = look.quantiles[row] if look.quantiles is not None and quantiles else []
                numbers = [f"{value:.6g}" for value in (look.best[row], *found)]
                last = row + 1 == len(times)
                yield Answer(line([name, time, *numbers]), look if last else None)

    def look_back(self, table: Table, name: str | None = None) -> Look:
        """A forecast of the last rows of a series, which are there, from those before them.

        Args:
            table: with `lookback` and `horizon` rows at least.
            name: of the series; the first where None.
        """
        series, column, shown = self._asked(table, [name] if name else [])[0]
        horizon = self.data.horizon
        if len(series.times) < self.data.lookback + horizon:
            self._check_past(series._replace(times=series.times[:-horizon]), shown)
        cut = len(series.times) - horizon
        past = series._replace(
            times=series.times[:cut],
            values=series.values[:cut],
            known=series.known[:cut],
            past=series.past[:cut],
            ahead=series.known[cut:],
        )
        look = self._look(past, column, shown, self.model.has_quantiles)
        return look._replace(came=series.values[cut:, column])

    def _asked(self, table: Table, only: Sequence[str]) -> list[tuple[Series, int, str]]:
        """The series to forecast, each with its column and its name."""
        found = [
            (series, column, series.name or name)
            for series in table.series
            for column, name in enumerate(table.columns)
            if not self.data.targets or name in self.data.targets
        ]
        names = [name for _, _, name in found]
        missing = [name for name in only if name not in names]
        if missing:
            raise ConfigError(f"series {missing[0]!r} is not in the table; it has {', '.join(names)[:300]}")
        return [one for one in found if not only or one[2] in only]

    def _missing(self, series: Series, name: str) -> str:
        """Why a series cannot be forecast; empty where it can."""
        try:
            self._check_past(series, name)
            self._ahead(series, name)
        except DataError as error:
            return str(error)
        return ""

    def _look(self, series: Series, column: int, name: str, quantiles: bool) -> Look:
        lookback, horizon = self.data.lookback, self.data.horizon
        self._check_past(series, name)
        known_names = self.about["names"]
        number = known_names.index(name) if name in known_names else 0
        raw = series.values[:, column]
        # A series that training did not have is scaled by itself.
        known_here = name in known_names
        mean = self.about["mean"][number] if known_here else float(np.nanmean(raw))
        std = self.about["std"][number] if known_here else float(np.nanstd(raw)) or 1.0
        ahead = coming(series, horizon)
        times = np.concatenate([series.times[-lookback:], ahead])
        covered = np.concatenate([series.known[-lookback:], self._ahead(series, name)])
        covariate = covariates(times, self._known_scale.of(covered), self.data.calendar)
        device = next(self.model.parameters()).device
        past = Past(
            torch.from_numpy(filled((raw - mean) / std)[-lookback:]).float()[None].to(device),
            torch.from_numpy(covariate).float()[None].to(device),
            torch.tensor([number], device=device),
            torch.from_numpy(self._seen(series, lookback)).float()[None].to(device),
        )
        with torch.no_grad():
            best = self.model.best(past)[0].double().cpu().numpy() * std + mean
            found = None
            if quantiles:
                levels = torch.tensor(self.decoding.levels, device=device)
                found = self.model.quantiles(past, levels)[0].double().cpu().numpy() * std + mean
        return Look(name, times[:lookback], raw[-lookback:], ahead, best, found, tuple(self.decoding.levels))

    @property
    def _channels(self) -> dict[str, Any]:
        """Names, means and deviations of the columns that are read beside; empty where none are."""
        return self.about.get("channels") or {}

    @property
    def _known_scale(self) -> Scale:
        return scales_of(self.about)[0]

    def _check_past(self, series: Series, name: str) -> None:
        if len(series.times) < self.data.lookback:
            called = f"series {name!r}" if name else "the series"
            raise DataError(
                f"{called}: expected at least {self.data.lookback} rows, got {len(series.times)}; give a "
                "longer past"
            )

    def _ahead(self, series: Series, name: str) -> np.ndarray:
        """[H, G] what is known of the future.

        Raises:
            DataError: something is missing; says for which times.
        """
        times = coming(series, self.data.horizon)
        ahead = np.full((len(times), len(self.data.known)), np.nan)
        given = series.ahead[: len(times)]
        ahead[: len(given)] = given
        missing = times[np.isnan(ahead).any(1)]
        if not len(missing):
            return ahead
        called = f"series {name!r}" if name else "the series"
        dated = times.dtype.kind == "M"
        first, last = (shown(times[at]) if dated else f"row {times[at] + 1}" for at in (0, -1))
        several = ", ".join(shown(one) if dated else f"row {one + 1}" for one in missing[:5])
        several += ", ..." if len(missing) > 5 else ""
        raise DataError(
            f"{called}: expected {', '.join(self.data.known)} for the {len(times)} rows to forecast "
            f"({first} to {last}), {len(missing)} are missing ({several}); "
            "add rows with an empty target at the end of the table, or give a table of the future (--future "
            "FILE)"
        )

    def _seen(self, series: Series, lookback: int) -> np.ndarray:
        """[L, C] of what is read beside, scaled as in training."""
        beside = seen_beside(series, self.data.inputs == "all")
        return all_filled(scales_of(self.about)[1].of(beside))[-lookback:]


def _given(kind: str, names: Sequence[str], given: Mapping[str, Sequence[float]], rows: int) -> np.ndarray:
    """Covariates by name as columns [rows, K].

    Raises:
        DataError: other names, or another number of values.
    """
    if set(given) != set(names):
        raise DataError(
            f"{kind}: expected {', '.join(names) or 'none'}, got {', '.join(given) or 'none'}; give each "
            f"of them {rows} values"
        )
    for name in names:
        if len(given[name]) != rows:
            raise DataError(f"{kind}: expected {rows} values of {name}, got {len(given[name])}")
    columns = [np.asarray(given[name], dtype=np.float64) for name in names]
    return np.stack(columns, 1) if columns else np.zeros((rows, 0))


def check_columns(table: Table, about: dict[str, Any]) -> None:
    """See that a table has the columns that a model of several columns reads, in their order.

    Raises:
        DataError: others came.
    """
    beside = (about.get("channels") or {}).get("names", [])
    names = beside[: len(beside) - len(table.past)] or list(table.columns)
    if list(names) != list(table.columns):
        raise DataError(
            f"expected the columns {', '.join(names)} in this order, got {', '.join(table.columns)}"
        )
