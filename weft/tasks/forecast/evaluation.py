"""Scores of forecasts next to forecasts without a model, and the error at each step ahead."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from weft.data.windows import PowerTransform, SeriesWindows
from weft.errors import ConfigError, DataError
from weft.figures.records import Figure, ForecastRecord
from weft.metrics.baseline import Baselines, Blocks, blocks_of, naive_errors, seasonal
from weft.metrics.metric import ItemKind
from weft.metrics.numbers import ForecastWindows, Mae, Mase, Mse, NumberMetric, Pinball, Rmse, Smape
from weft.metrics.scored import (
    Compared,
    ComparedOutputs,
    DeferredOutputs,
    ScoreWithBaselines,
    fingerprint,
    grouped,
    of_rows,
)
from weft.tasks.evaluation import Evaluation
from weft.tasks.forecast.forecaster import AnyForecaster, forecast_windows, in_units, record
from weft.tasks.forecast.model import ROWS, best_ridge, moments, steps_of
from weft.wording import plural

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
NAMED = f"levels:{','.join(map(str, LEVELS))}"
SHOWN = 10  # series whose errors are printed
MODEL = "the model"


@dataclass(frozen=True)
class ForecastEvaluation(Evaluation):
    """The errors of a model and of the baselines on the same windows."""

    by_step: Mapping[str, np.ndarray]  # [H] scaled squared errors of MODEL and of each baseline
    windows: int
    coverage: float | None  # share of values between the first and the last of LEVELS
    series: Mapping[str, Mapping[str, float]]  # the scores in units of each series by name
    example: ForecastRecord  # a window from the middle, with the true values
    shows: ClassVar[str] = "errors by steps ahead, and one window"
    offers: ClassVar[tuple[ItemKind, ...]] = ("numbers", "forecasts")

    def cautions(self) -> list[str]:
        said = f"{self.again:,} of {self.windows:,} windows are in the training part of the run"
        return [f"{said}: the scores are too good"] if self.again else []

    def details(self) -> list[str]:
        """A line for each of the first series."""
        if len(self.series) < 2:
            return []
        found = [
            f"  {name}: " + ", ".join(f"{key} {value:.4g}" for key, value in own.items())
            for name, own in list(self.series.items())[:SHOWN]
        ]
        rest = len(self.series) - SHOWN
        return [*found, f"  and {rest:,} more series, see --json"] if rest > 0 else found

    def facts(self) -> dict[str, Any]:
        mse, mae = self.scores[:2]
        found = {
            name: {
                "mse": mse.baselines.get(name, mse.value),
                "mae": mae.baselines.get(name, mae.value),
                "by_step": errors.tolist(),
            }
            for name, errors in self.by_step.items()
        }
        return {
            **found.pop(MODEL),
            "windows": self.windows,
            "coverage": self.coverage,
            "baselines": found,
            "series": self.series,
        }

    def figure(self, name: str) -> "Figure":
        from weft.figures.series import errors_figure  # imports matplotlib

        by_step = {name if one == MODEL else one: errors for one, errors in self.by_step.items()}
        return errors_figure(by_step, self.example, title=self.title)


class _Coverage(NumberMetric):
    """100 times the share of values between the first and the last quantile, which has an aim of its own."""

    name, higher_is_better = "coverage", True

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        if found.quantiles is None:
            return [np.zeros(true.shape)]
        return [100.0 * ((true >= found.quantiles[..., 0]) & (true <= found.quantiles[..., -1]))]


class WantedScore(NamedTuple):
    """A score of forecasts."""

    name: str
    metric: NumberMetric
    scaled: bool  # of values that the training part scales, or in units of the data
    about: str = ""  # how it was computed, for its signature


class ForecastSums(NamedTuple):
    """Statistics of forecasts, by the name of who forecasts: MODEL or a baseline."""

    rows: Sequence[Mapping[str, np.ndarray]]  # [N, K] of each wanted score
    by_step: Mapping[str, np.ndarray]  # [H, 2] sum of the scaled squared errors of each step, and number
    truth: np.ndarray  # [N] sums of the true values, which identify windows


HOW = "scaled by the training part"
SCALED = WantedScore("MSE", Mse(), True, HOW), WantedScore("MAE", Mae(), True, HOW)


@dataclass(frozen=True)
class ScoredWindows:
    """Windows to forecast with a model and without one, some at a time: all at once may take gigabytes."""

    model: AnyForecaster  # in evaluation mode
    windows: SeriesWindows
    chosen: np.ndarray  # [N, 2]
    season: int  # rows per season, for the naive errors
    trained: SeriesWindows | None = None  # of the run, for the naive errors; a new series has its own rows
    baselines: Baselines = field(default_factory=dict)

    @property
    def levels(self) -> Sequence[float]:
        """Of the quantiles; empty for a point forecaster."""
        return LEVELS if self.model.has_quantiles else ()

    def parts(self, levels: Sequence[float]) -> Iterator[tuple[ComparedOutputs, ComparedOutputs]]:
        """Some windows at a time: scaled by the training part, and in units of the data."""
        windows, naive = self.windows, self._naive_errors()
        for at in range(0, len(self.chosen), ROWS):
            chosen = self.chosen[at : at + ROWS]
            past, future, _ = windows.take(chosen)
            found = forecast_windows(self.model, windows, chosen, levels)
            lowest = {name: ForecastWindows(forecast(past)) for name, forecast in self.baselines.items()}
            scaled = ComparedOutputs(found, future, None, lowest, "numbers")
            yield scaled, _in_units(scaled, windows, chosen, naive[chosen[:, 0]].T)

    def _naive_errors(self) -> np.ndarray:
        """[N, 2] of each series."""
        trained, windows = self.trained or self.windows, self.windows
        known = {name: number for number, name in enumerate(trained.names)}
        train = [
            trained.training_values(known[name]) if name in known else windows.values(number)
            for number, name in enumerate(windows.names)
        ]
        return np.array([naive_errors(one, self.season) for one in train])

    def sums(self, wanted: Sequence[WantedScore], levels: Sequence[float] = ()) -> ForecastSums:
        """Forecast every window once, and score it."""
        rows: list[dict[str, list[np.ndarray]]] = [defaultdict(list) for _ in wanted]
        by_step: dict[str, Any] = defaultdict(float)
        truth = []
        for scaled, units in self.parts(levels):
            truth.append(np.nansum(scaled.references, 1))
            for own, one in zip(rows, wanted, strict=True):
                compared = scaled if one.scaled else units
                for name, forecasts in _by_name(compared):
                    own[name].append(one.metric.rows(forecasts, compared.references))
            for name, forecasts in _by_name(scaled):
                by_step[name] += Mse().rows(forecasts.best.T, scaled.references.T)
        whole = [{name: np.concatenate(each) for name, each in own.items()} for own in rows]
        return ForecastSums(whole, by_step, np.concatenate(truth))

    def compared(self, groups: np.ndarray | None = None, about: str = "") -> list[Compared]:
        """All forecasts in units of the data, made once a metric reads them."""
        said = "|".join([about, f"season:{self.season}", *([NAMED] if self.levels else [])])

        @cache
        def make() -> ComparedOutputs:
            every = [units for _, units in self.parts(self.levels)]
            parts = [dict(_by_name(one)) for one in every]
            whole = {name: _joined([one[name] for one in parts]) for name in parts[0]}
            true = np.concatenate([one.references for one in every])
            return ComparedOutputs(whole.pop(MODEL), true, None, whole, "numbers", groups, said)

        return [DeferredOutputs(kind, make) for kind in ForecastEvaluation.offers]


def _by_name(compared: ComparedOutputs) -> list[tuple[str, ForecastWindows]]:
    return [(MODEL, compared.outputs), *compared.baselines.items()]


def _in_units(
    scaled: ComparedOutputs, windows: SeriesWindows, chosen: np.ndarray, naive: np.ndarray
) -> ComparedOutputs:
    """Forecasts in units of the data, with naive errors [2, B]."""
    found = {name: in_units(one, windows, chosen, *naive) for name, one in _by_name(scaled)}
    true = windows.in_units(scaled.references, windows.scales(chosen))
    return ComparedOutputs(found.pop(MODEL), true, None, found, "numbers")


def _joined(parts: Sequence[ForecastWindows]) -> ForecastWindows:
    def whole(name: str) -> Any:
        arrays = [getattr(one, name) for one in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return ForecastWindows(
        whole("best"), whole("quantiles"), parts[0].levels, whole("naive"), whole("naive_squared")
    )


def evaluate(
    model: AnyForecaster,
    windows: SeriesWindows,
    part: int,
    *,
    trained: SeriesWindows | None,
    title: str,
    season: int,
    series: str | None = None,
) -> ForecastEvaluation:
    """Score a model and the baselines on all windows of a part that prediction answers, from every origin.

    Neighbouring windows share most values, so the bootstrap draws blocks of as many origins as the horizon.
    """
    if series is not None and series not in windows.names:
        raise ConfigError(f"--series: {series!r} is not in the data; it has {', '.join(windows.names)[:300]}")
    every = windows.of(part)
    chosen = every[windows.answerable(every)]
    if not len(chosen):
        asked = f"a window of {windows.lookback} rows and {plural(windows.horizon, 'row')} after them"
        raise DataError(f"{title}: expected {asked}, got none; give more rows")
    shown = chosen if series is None else chosen[chosen[:, 0] == windows.names.index(series)]
    baselines = without_model(trained, windows.horizon, season)
    forecasts = ScoredWindows(model, windows, chosen, season, trained, baselines)
    blocks = blocks_of(chosen, windows.horizon, apart=windows.table.long)
    dropped = len(every) - len(chosen)
    about = f"windows:{len(chosen)}|{f'no forecast:{dropped}' if dropped else 'none dropped'}|{blocks.about}"
    seen = 0
    if trained is not None and trained is not windows:
        seen = windows.in_training(chosen, trained)
    about += "|transformed values" if windows.transform != PowerTransform() else ""
    about += f"|new series, by their own rows:{len(windows.new)}" if windows.new else ""
    wanted = _wanted(season, quantiles=model.has_quantiles)
    found = forecasts.sums(wanted, forecasts.levels)
    scores = _scores(wanted, found, blocks, about)
    by_step = {name: sums[:, 0] / np.maximum(1, sums[:, 1]) for name, sums in found.by_step.items()}
    coverage = [one.value / 100 for one in scores if one.score.name == "coverage"]
    return ForecastEvaluation(
        f"{title}, lookback {windows.lookback}, horizon {windows.horizon}, every origin",
        [f"{step + 1}\t{error:.6f}" for step, error in enumerate(by_step[MODEL])],
        scores,
        by_step,
        len(chosen),
        coverage[0] if coverage else None,
        _by_series(wanted, found, chosen, windows.names),
        record(model, windows, shown[len(shown) // 2][None], LEVELS, quantiles=model.has_quantiles),
        compared=forecasts.compared(blocks.numbers, about),
        again=seen,
    )


def _wanted(season: int, *, quantiles: bool) -> list[WantedScore]:
    found = [
        *SCALED,
        WantedScore("MAE in units", Mae(), False),
        WantedScore("RMSE in units", Rmse(), False),
        WantedScore("sMAPE", Smape(), False),
        WantedScore("MASE", Mase(), False, f"season:{season}"),
    ]
    if quantiles:
        expected = f"between:{LEVELS[0]}..{LEVELS[-1]}|expected:{100 * (LEVELS[-1] - LEVELS[0]):.0f}"
        found.insert(2, WantedScore("pinball", Pinball(), True, f"{HOW}|{NAMED}"))
        found.append(WantedScore("pinball in units", Pinball(), False, NAMED))
        found.append(WantedScore("coverage", _Coverage(), False, expected))
    return found


def _scores(
    wanted: Sequence[WantedScore], found: ForecastSums, blocks: Blocks, about: str
) -> list[ScoreWithBaselines]:
    """The scores that are known, with intervals over blocks."""
    items = fingerprint([blocks.about, *(f"{value:.6g}" for value in found.truth)])
    scores = []
    for one, rows in zip(wanted, found.rows, strict=True):
        if not rows[MODEL][:, 1].any():  # MASE of series that never change
            continue
        beside = {name: grouped(each, blocks.numbers) for name, each in rows.items()}
        own = beside.pop(MODEL)
        beside = {} if one.name == "coverage" else beside  # baselines have no quantiles
        score = of_rows(one.metric, own, beside=beside, items=items).renamed(one.name)
        scores.append(score.signed("|".join(filter(None, (one.about, about)))))
    return scores


def _by_series(
    wanted: Sequence[WantedScore], found: ForecastSums, chosen: np.ndarray, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The scores in units of each series that has any."""
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for one, rows in zip(wanted, found.rows, strict=True):
        for name, total in zip(names, grouped(rows[MODEL], chosen[:, 0]), strict=False):
            if not one.scaled and total[1]:
                values[name][one.name] = float(one.metric.value(total))
    return dict(values)


PENALTIES = (1e-1, 1e1, 1e2, 1e3, 1e4, 1e5)
"""Of the ridge regression without a model; the smallest error on the validation part chooses one."""


def without_model(windows: SeriesWindows | None, horizon: int, season: int) -> Baselines:
    """Last value repeated, last season repeated, ridge regression if there are training windows.

    The regression is shared by all series (Toner & Darlow 2024 find it hard to beat).
    """
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "last value repeated": lambda past: seasonal(past, horizon, 1),
        f"last season ({season}) repeated": lambda past: seasonal(past, horizon, season),
    }
    if windows is None:
        return found
    train, valid = windows.of(0), windows.of(1)
    parts = []
    for steps in steps_of(windows):
        one, other = (moments(windows, chosen, steps=steps) for chosen in (train, valid))
        parts.append(best_ridge(one, other if other.windows.any() else one, PENALTIES))
    weight = np.concatenate([weight for _, weight in parts], 1)
    said = " and ".join(f"{penalty:g}" for penalty in dict.fromkeys(penalty for penalty, _ in parts))
    return {**found, f"ridge regression (penalty {said})": lambda past: _linear(past, weight)}


def _linear(past: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Forecasts [B, H] from pasts [B, L] less their last value and a one, with weights [L + 1, H]."""
    last = past[:, -1:]
    return np.concatenate([past - last, np.ones_like(last)], 1) @ weight + last  # type: ignore[no-any-return]
