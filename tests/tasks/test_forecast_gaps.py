"""Series with gaps: what the closed form and the baselines learn from them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests import toys
from weft.data.windows import SeriesWindows
from weft.errors import ConfigError
from weft.figures.records import ForecastRecord
from weft.nn.forecasters.forecaster import LinearForecaster
from weft.nn.heads.head import Normal
from weft.tasks.forecast import model
from weft.tasks.forecast.data import SeriesData, series_facts
from weft.tasks.forecast.evaluation import ForecastEvaluation, evaluate
from weft.tasks.forecast.forecaster import SeriesColumn, SeriesForecaster
from weft.tasks.forecast.model import Baseline, ForecastModel, fit, moments, refitted
from weft.tasks.forecast.predictor import ForecastAnswer, Horizon
from weft.tasks.forecast.task import ForecastTask, ForecastTraining

DAY = 12


def shop(*, empty: float = 0.0, days: int = 140) -> np.ndarray:
    """Open in 5 of 12 hours: 2 x the hour and noise of deviation 1, with a share of empty cells."""
    chance = np.random.default_rng(5)
    hours = np.arange(days * DAY) % DAY
    values = 2.0 * hours + chance.normal(size=len(hours))
    values[(hours < 5) | (hours >= 10) | (chance.random(len(hours)) < empty)] = np.nan
    return values


def windows(values: np.ndarray, lookback: int = 3 * DAY, horizon: int = DAY) -> SeriesWindows:
    times = pd.date_range("2024-01-01", periods=len(values), freq="2h")
    table = toys.series_table(values[:, None], times=times, frequency="2h")
    return SeriesWindows(
        table, split=(0.6, 0.2, 0.2), lookback=lookback, horizon=horizon, calendar=False, season=DAY
    )


def score(found: SeriesWindows, base: Baseline) -> ForecastEvaluation:
    """The scores of a closed form, as the model that begins with it."""
    built = ForecastModel(forecaster=LinearForecaster, head=Normal, base="level")
    network = built.build(found.lookback, found.horizon, 0, 1).eval()
    network.begin_with(*(torch.from_numpy(one).float() for one in (base.weight, base.spread)))
    return evaluate(network, found, 2, trained=found, title="shop", season=DAY)


def test_hours_without_a_value_in_training_are_named_before_each_forecast() -> None:
    found = windows(shop())
    network = ForecastModel(forecaster=LinearForecaster).build(found.lookback, found.horizon, 0, 1)
    forecaster = SeriesForecaster(network, SeriesData(file="x.csv"), series_facts(found), (0.5,))
    shops = forecaster.chosen(found.table)
    said = "no value in training at 20:00 to 08:00 (y), so forecasts there mean nothing"
    assert forecaster.remarks(shops)[0] == said
    every = windows(np.arange(140.0 * DAY))
    assert every.unmeasured() == {} and series_facts(every)["unmeasured"] == {}


def test_samples_of_a_meter_can_be_told_apart() -> None:
    found = windows(104872006 + np.arange(140.0 * DAY))
    data = SeriesData(file="x.csv", lookback=found.lookback, horizon=found.horizon)
    task = ForecastTask(data=data, model=ForecastModel(forecaster=LinearForecaster), decoding=Horizon())
    training = ForecastTraining(task, found, None)
    network = task.built(1, 0, 0).eval()
    for sample in training.validate(network).samples:
        first = str(sample.source).split()[2:]
        rows = [float(one) for one in (*first, *str(sample.reference).split())]
        assert len(rows) == 12 and set(np.diff(rows)) == {1.0}


def test_counts_get_no_forecast_below_0() -> None:
    counts = np.random.default_rng(8).poisson(0.4, size=150).astype(float)
    found = windows(counts, 7, 5)
    base = fit(found, 7, level=True)
    for positive, least in ((False, -0.01), (True, 0.0)):
        found.positive = positive
        one = score(found, base).example
        assert one.quantiles is not None
        assert (one.quantiles.min() < -0.01) is not positive and one.best.min() >= (least if positive else -9)
    table = found.table
    table.series[0].values[3] = -1
    with pytest.raises(ConfigError, match="positive: expected no value below 0, got -1 in y"):
        SeriesWindows(table, split=(0.6, 0.2, 0.2), lookback=7, horizon=5, calendar=False, positive=True)


def test_new_series_and_columns_that_end_early_are_named_at_predict() -> None:
    found = windows(shop())
    base = ForecastModel(forecaster=LinearForecaster).build(4, 2, 0, 1)
    about = {"names": ["1", "2"], "mean": [0.0, 0.0], "std": [1.0, 1.0], "known": 0}
    forecaster = SeriesForecaster(base, SeriesData(file="x.csv", lookback=4, horizon=2), about, ())
    values = np.arange(10.0)[:, None] * np.ones(2)
    values[6:, 1] = np.nan
    series = found.table.series[0]._replace(times=found.table.series[0].times[:10], values=values)
    said = forecaster.remarks([SeriesColumn(series, 0, "1"), SeriesColumn(series, 1, "1.0")])
    assert said == [
        "new since the training, so scaled by their own rows: 1.0",
        "series '1.0' has no value after 2024-01-01 10:00:00, 4 rows before the first row that is forecast",
    ]


def test_rows_without_a_value_at_the_end_and_series_that_end_early_are_named(tmp_path: Path) -> None:
    days = [f"2024-01-{day:02d}" for day in range(1, 21)]
    rows = [f"a,{day},{'' if day > days[16] else 7}" for day in days] + [f"b,{day},7" for day in days[:12]]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["unique_id,ds,y", *rows]))
    about = {"names": ["a", "b"], "mean": [0.0, 0.0], "std": [1.0, 1.0], "known": 0}
    data = SeriesData(file=str(path), lookback=4, horizon=2)
    network = ForecastModel(forecaster=LinearForecaster).build(4, 2, 0, 1)
    forecaster = SeriesForecaster(network, data, about, ())
    assert forecaster.remarks(forecaster.chosen(data.table())) == [
        "forecast from their own ends, before 2024-01-17: b (2024-01-12)",
        "series 'a' has no value in the 3 last rows of the table, which are forecast",
    ]


def test_a_meter_has_all_its_digits_in_json() -> None:
    best = np.array([104872006.123456])
    none = np.zeros(0)
    record = ForecastRecord("m", none, none, none, best, None, (), None, ["2024-01-01"], 50.0)
    answer = ForecastAnswer([record])
    assert answer.text() == "m,2024-01-01,104872006.1235"
    assert json.loads(json.dumps(answer.json()))[0]["y"] == 104872006.123456


@pytest.mark.parametrize("empty", [0.0, 0.25, 0.6])
def test_opening_hours_and_empty_cells_are_learnt_and_have_a_band(empty: float) -> None:
    found = windows(shop(empty=empty))
    base = fit(found, DAY, level=True)
    report = score(found, base)
    by_name = {one.score.name: one for one in report.scores}
    error = by_name["MAE in units"]
    season, ridge = (value for name, value in error.baselines.items() if not name.startswith("last value"))
    assert found.fill == DAY and "12 rows before" in found.said
    assert 0.75 < error.value < 1.05  # the noise alone is 0.80
    assert 1.0 < season < 1.3 and ridge < 1.05  # the difference of two noises is 1.13
    assert by_name["coverage"].value == pytest.approx(80, abs=8)


def test_a_step_without_a_value_has_the_widest_band_and_repeats_the_last_value() -> None:
    values = np.random.default_rng(6).normal(size=200).cumsum()
    values[1::2] = np.nan
    every = windows(values, 4, 2)
    chosen = every.of(0)
    odd = moments(every, chosen[chosen[:, 1] % 2 == 0])  # the second step is never measured
    assert odd.windows[0] > 50 and odd.windows[1] == 0
    weight = odd.ridge(1.0, np.ones(5, dtype=bool))
    assert weight[:, 0].any() and not weight[:, 1].any()
    assert np.isnan(odd.errors(weight)).tolist() == [False, True]
    base = model._baseline({"ridge": weight}, {"ridge": 1.0}, "ridge", odd, odd)
    assert base.spread[1] == base.spread[0] > 0.1


def test_a_long_horizon_is_fitted_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    found = windows(shop(empty=0.25, days=60), 7, 5)
    monkeypatch.setattr(model, "PENALTIES", (10.0,))
    monkeypatch.setattr(model, "SHARES", ())
    whole, again = fit(found, 1), refitted(fit(found, 1), found, 1)
    monkeypatch.setattr(model, "CELLS", 2 * 9**2)
    parts = fit(found, 1)
    assert [part.weight.shape[1] for part in parts.parts] == [2, 2, 1] and not whole.parts
    np.testing.assert_allclose(parts.weight, whole.weight, atol=1e-9)
    np.testing.assert_allclose(parts.spread, whole.spread, atol=1e-9)
    np.testing.assert_allclose(refitted(parts, found, 1).weight, again.weight, atol=1e-9)
