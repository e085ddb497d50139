"""Scores of forecasts next to forecasts without a model, and the error at each step ahead."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch

from weft.data.times import clock_of
from weft.data.windows import SeriesWindows
from weft.errors import ConfigError
from weft.figures.records import ForecastRecord
from weft.metrics.forecasts import SUMS, Blocks, blocks_of, naive_error, scores, sums
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines, fingerprint, grouped
from weft.metrics.series import Baselines, Errors, ErrorSums, repeated, seasonal
from weft.tasks.evaluation import Evaluation
from weft.tasks.forecast.forecaster import CalibratedForecast, ForecastEnsemble
from weft.tasks.forecast.model import ROWS, ForecastNetwork, moments, tensors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
SHOWN = 10  # series whose errors are printed


class UnitScores(NamedTuple):
    """Scores in the units of the data.

    Fields:
        scored: over all series, with intervals and baselines.
        series: the value of each score, for each series by name.
    """

    scored: list[ScoreWithBaselines]
    series: Mapping[str, Mapping[str, float]]

    def lines(self) -> list[str]:
        """A line for each of the first series."""
        if len(self.series) < 2:
            return []
        found = [
            f"  {name}: " + ", ".join(f"{key} {value:.4g}" for key, value in own.items())
            for name, own in list(self.series.items())[:SHOWN]
        ]
        rest = len(self.series) - SHOWN
        return [*found, f"  and {rest:,} more series, see --json"] if rest > 0 else found


Scorable = ForecastNetwork | ForecastEnsemble | CalibratedForecast


@dataclass(frozen=True)
class ForecastEvaluation(Evaluation):
    """The errors of a model and of the baselines on the same windows."""

    title: str
    outputs: list[str]  # step ahead and squared error
    scores: list[ScoreWithBaselines]  # MSE, MAE; with quantiles also the pinball loss over LEVELS
    model: Errors
    baselines: dict[str, Errors]
    windows: int
    coverage: float | None  # share of values between the first and the last of LEVELS
    units: UnitScores
    example: ForecastRecord  # a window from the middle, with the true values
    shows: ClassVar[str] = "errors by steps ahead, and one window"

    def details(self) -> list[str]:
        """Errors in the units of the data."""
        return list(self.units.lines())

    def facts(self) -> dict[str, Any]:
        """Errors by step, for the model and the baselines."""

        def plain(errors: Errors) -> dict[str, object]:
            return {"mse": errors.squared, "mae": errors.absolute, "by_step": errors.by_step.tolist()}

        return {
            **plain(self.model),
            "windows": self.windows,
            "coverage": self.coverage,
            "baselines": {name: plain(errors) for name, errors in self.baselines.items()},
            "series": self.units.series,
        }

    def figure(self, name: str) -> "Figure":
        """Errors by steps ahead next to the baselines, and one window."""
        from weft.figures.series import errors_figure  # imports matplotlib

        errors = {name: self.model, **self.baselines}
        by_step = {called: one.by_step for called, one in errors.items()}
        return errors_figure(by_step, self.example, title=self.title)


def mean_squared(model: Scorable, windows: SeriesWindows, chosen: np.ndarray) -> Errors:
    """Errors of a model on some windows."""
    device = next(model.parameters()).device
    sums = ErrorSums(windows.horizon)
    for at in range(0, len(chosen), ROWS):
        past, future = tensors(windows, chosen[at : at + ROWS], device)
        with torch.no_grad():
            sums.add(model.best(past).double().cpu().numpy(), future)
    return sums.errors()


def evaluate(
    model: Scorable, windows: SeriesWindows, part: int, *, title: str, season: int, series: str | None = None
) -> ForecastEvaluation:
    """Score a model and the baselines on all windows of a part, from every origin.

    Neighbouring windows share most of their values. The bootstrap for intervals therefore draws whole blocks,
    each with as many origins as the horizon has steps.

    Args:
        model: in evaluation mode.
        windows: of the series.
        part: 1 validation, 2 test.
        title: names the data.
        season: rows per season.
        series: the series of the window in the figure; None takes the one in the middle.

    Raises:
        ConfigError: the data has no such series.

    Source: Carlstein 1986, "The use of subseries values for estimating the variance of a general statistic
        from a stationary sequence" (blocks that do not overlap).
    """
    if series is not None and series not in windows.names:
        raise ConfigError(f"--series: {series!r} is not in the data; it has {', '.join(windows.names)[:300]}")
    chosen = windows.of(part)
    shown = chosen if series is None else chosen[chosen[:, 0] == windows.names.index(series)]
    found = _summed(model, windows, chosen, without_model(windows, season), season)
    blocks = blocks_of(chosen, windows.horizon, apart=windows.table.long)
    units = _in_units(found, windows, chosen, blocks, season=season, quantiles=model.has_quantiles)
    inside, values = (found.each[:, SUMS.index(one)].sum() for one in ("inside", "values"))
    return ForecastEvaluation(
        f"{title}, lookback {windows.lookback}, horizon {windows.horizon}, every origin",
        [f"{step + 1}\t{error:.6f}" for step, error in enumerate(found.errors.by_step)],
        [*_scores(found, blocks, quantiles=model.has_quantiles), *units.scored],
        found.errors,
        found.lowest,
        len(chosen),
        float(inside / max(1.0, values)) if model.has_quantiles else None,
        units,
        _example(model, windows, shown[len(shown) // 2]),
    )


class _Sums(NamedTuple):
    """The sums of the errors of a model and of the baselines on N windows."""

    errors: Errors  # of the model, scaled by the training part as all but the sums in units
    each: np.ndarray  # [N, len(SUMS)]
    truth: np.ndarray  # [N] sums of the true values, which identify windows
    lowest: dict[str, Errors]  # of the baselines
    units: np.ndarray  # [N, len(SUMS)] in the units of the data
    lowest_units: dict[str, np.ndarray]  # [len(SUMS)] of the baselines


def _summed(
    model: Scorable, windows: SeriesWindows, chosen: np.ndarray, plain: Baselines, season: int
) -> _Sums:
    """Forecast every window once with the model and with each of the baselines."""
    device, levels = next(model.parameters()).device, LEVELS if model.has_quantiles else ()
    naive = np.array([naive_error(windows.training_values(n), season) for n in range(len(windows.names))])
    errors, lowest = ErrorSums(windows.horizon), {name: ErrorSums(windows.horizon) for name in plain}
    lowest_units = {name: np.zeros(len(SUMS)) for name in plain}
    each, truth, units = [], [], []
    for at in range(0, len(chosen), ROWS):
        part = chosen[at : at + ROWS]
        past, future = tensors(windows, part, device)
        mean, std = (side[part[:, 0]][:, None] for side in windows.scale)
        came, scale, q, own_q = future * std + mean, naive[part[:, 0]], None, None
        with torch.no_grad():
            best = model.best(past).double().cpu().numpy()
            if levels:
                q = model.quantiles(past, torch.tensor(levels, device=device)).double().cpu().numpy()
                own_q = q * std[..., None] + mean[..., None]
        errors.add(best, future)
        each.append(sums(best, future, np.ones(len(best)), q, levels))
        truth.append(np.nan_to_num(future).sum(1))
        units.append(sums(best * std + mean, came, scale, own_q, levels))
        before = windows.take(part)[0]
        for name, forecast in plain.items():
            guess = forecast(before)
            lowest[name].add(guess, future)
            lowest_units[name] += sums(guess * std + mean, came, scale).sum(0)
    found = {name: one.errors() for name, one in lowest.items()}
    rows = (np.concatenate(one) for one in (each, truth, units))
    return _Sums(errors.errors(), next(rows), next(rows), found, next(rows), lowest_units)


def _in_units(
    found: _Sums, windows: SeriesWindows, chosen: np.ndarray, blocks: Blocks, *, season: int, quantiles: bool
) -> UnitScores:
    about = f"windows:{len(chosen)}|none dropped|{blocks.about}"
    how: dict[str, Any] = {"season": season, "levels": LEVELS if quantiles else (), "about": about}
    by_series = {}
    for number, total in enumerate(grouped(found.units, chosen[:, 0])):
        if total[SUMS.index("values")]:
            by_series[windows.names[number]] = {
                one.score.name: one.value for one in scores(total[None], {}, **how)
            }
    return UnitScores(scores(grouped(found.units, blocks.numbers), found.lowest_units, **how), by_series)


def _scores(measured: _Sums, blocks: Blocks, *, quantiles: bool) -> list[ScoreWithBaselines]:
    """MSE, MAE and, with quantiles, the pinball loss, all scaled by the training part."""
    summed = grouped(measured.each, blocks.numbers)
    signature = f"scaled by the training part|windows:{len(measured.each)}|values:{measured.errors.values}"
    signature += f"|none dropped|{blocks.about}"
    items = fingerprint([blocks.about, *(f"{value:.6g}" for value in measured.truth)])
    values = summed[:, SUMS.index("values")]
    # A forecast without quantiles has the absolute error as its pinball loss at every level.
    rows = [("MSE", "squared", "squared", ""), ("MAE", "absolute", "absolute", "")]
    rows += [("pinball", "pinball", "absolute", f"levels:{','.join(map(str, LEVELS))}|")] if quantiles else []
    scores = []
    for name, own, lowest, said in rows:
        metric = ratio(name, said + signature, higher_is_better=False)
        beside = {key: float(getattr(one, lowest)) for key, one in measured.lowest.items()}
        scores.append(mean_of(metric, summed[:, SUMS.index(own)], values, baselines=beside, items=items))
    return scores


PENALTIES = (1e-1, 1e1, 1e2, 1e3, 1e4, 1e5)
"""Of the ridge regression without a model; the smallest error on the validation part chooses one."""


def without_model(windows: SeriesWindows, season: int) -> Baselines:
    """Last value repeated, last season repeated, closed-form ridge regression.

    The regression is shared by all series (Toner & Darlow 2024 find it hard to beat).
    """
    train, valid = windows.of(0), windows.of(1)
    sums = moments(windows, train)
    kept = np.ones(len(sums.inner), dtype=bool)
    weights = {penalty: sums.ridge(penalty, kept) for penalty in PENALTIES}
    errors = {penalty: ErrorSums(windows.horizon) for penalty in PENALTIES}
    chosen = valid if len(valid) else train
    for at in range(0, len(chosen), ROWS):
        past, future, _ = windows.take(chosen[at : at + ROWS])
        for penalty, weight in weights.items():
            errors[penalty].add(_linear(past, weight), future)
    best = min(PENALTIES, key=lambda penalty: errors[penalty].errors().squared)
    return {
        "last value repeated": lambda past: repeated(past, windows.horizon),
        f"last season ({season}) repeated": lambda past: seasonal(past, windows.horizon, season),
        f"ridge regression (penalty {best:g})": lambda past: _linear(past, weights[best]),
    }


def _linear(past: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Forecasts [B, H] from pasts [B, L] less their last value and a one, with weights [L + 1, H]."""
    last = past[:, -1:]
    return np.concatenate([past - last, np.ones_like(last)], 1) @ weight + last  # type: ignore[no-any-return]


def _example(model: Scorable, windows: SeriesWindows, window: np.ndarray) -> ForecastRecord:
    """A window [2] and its forecast, in the units of the data."""
    device = next(model.parameters()).device
    past, future = tensors(windows, window[None], device)
    number = int(window[0])
    mean, std = (float(side[number]) for side in windows.scale)
    with torch.no_grad():
        best = model.best(past)[0].double().cpu().numpy() * std + mean
        q = None
        if model.has_quantiles:
            levels = torch.tensor(LEVELS, device=device)
            q = model.quantiles(past, levels)[0].double().cpu().numpy() * std + mean
    times = clock_of(windows.times(window.tolist()))
    before = past.values[0].double().cpu().numpy() * std + mean
    split = windows.lookback
    actual = future[0] * std + mean
    return ForecastRecord(
        windows.names[number], times[:split], before, times[split:], best, q, LEVELS, actual
    )
