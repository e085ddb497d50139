"""A forecaster that begins in closed form, and stays what it began as where nothing better is learnt."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import toys
from tests.commands.shell import weft
from weft.data.series import Columns
from weft.data.windows import SeriesWindows
from weft.nn.forecasters.forecaster import LinearForecaster, Past
from weft.nn.heads.head import Normal, Point, Quantile, RealHead, Student
from weft.tasks.forecast.evaluation import PENALTIES, without_model
from weft.tasks.forecast.init import recipe
from weft.tasks.forecast.model import (
    FIRST,
    KINDS,
    STRETCHES,
    ForecastNetwork,
    FormErrors,
    RidgeForm,
    fit,
    judge,
    lookback_of,
    moments,
    refitted,
)


def windows(values: np.ndarray, lookback: int = 7, horizon: int = 5) -> SeriesWindows:
    table = toys.series_table(values[:, None])
    return SeriesWindows(table, split=(0.6, 0.2, 0.2), lookback=lookback, horizon=horizon, calendar=False)


def test_each_step_of_the_ridge_regression_is_penalised_least_squares_on_its_own_windows() -> None:
    values = np.random.default_rng(3).normal(size=97)
    values[[17, 18, 40]] = np.nan
    found = windows(values, 4, 3)
    past, future, _ = found.take(found.of(0))
    *_, (name, forecast) = without_model(found, found.horizon, 1).items()
    penalty = float(name.split("penalty ")[1].removesuffix(")"))
    new = np.random.default_rng(4).normal(size=(2, 4))
    for step in range(3):  # least squares with sqrt(penalty) rows appended; the constant has no penalty
        there = np.isfinite(future[:, step])
        assert 0 < there.sum() < len(there)
        x = np.c_[past - past[:, -1:], np.ones(len(past))][there]
        rows = np.concatenate([x, np.sqrt(penalty) * np.eye(5)[:4]])
        y = np.concatenate([(future[:, step] - past[:, -1])[there], np.zeros(4)])
        want = np.c_[new - new[:, -1:], [1, 1]] @ np.linalg.lstsq(rows, y, rcond=None)[0] + new[:, -1]
        np.testing.assert_allclose(forecast(new)[:, step], want, atol=1e-8)


def test_the_penalty_without_a_model_is_the_best_on_the_validation_part() -> None:
    values = returning(211, share=0.2)
    values[-42:] = np.random.default_rng(8).normal(size=42).cumsum()  # the test part would take another
    found = windows(values, 7, 3)
    *_, (name, _) = without_model(found, found.horizon, 1).items()
    train, *others = (moments(found, found.of(part)) for part in (0, 1, 2))
    kept = np.ones(len(train.outer), dtype=bool)
    errors = [{one: part.errors(train.ridge(one, kept)).mean() for one in PENALTIES} for part in others]
    best = [min(PENALTIES, key=lambda one: error[one]) for error in errors]
    assert name == f"ridge regression (penalty {best[0]:g})" and best[0] != best[1]


def test_with_the_validation_part_it_is_the_same_form_fitted_to_both() -> None:
    found = windows(returning(211, share=0.2), 7, 3)
    base = fit(found, 1)
    penalty = float(base.name.split("(penalty ")[1].split(")")[0])
    past, future, _ = found.take(np.concatenate([found.of(0), found.of(1)]))
    rows = np.concatenate([np.c_[past - past[:, -1:], np.ones(len(past))], np.sqrt(penalty) * np.eye(8)[:7]])
    y = np.concatenate([future - past[:, -1:], np.zeros((7, 3))])
    again = refitted(base, found, 1)
    assert base.name.startswith("ridge") and again.name == base.name
    np.testing.assert_allclose(again.weight, np.linalg.lstsq(rows, y, rcond=None)[0], atol=1e-8)
    level = fit(found, 1, level=True)
    assert refitted(level, found, 1) == level


def test_it_is_the_season_of_a_series_that_only_repeats_and_the_last_value_of_a_walk() -> None:
    season = np.tile(np.random.default_rng(4).normal(size=3), 60)
    found = fit(windows(season, 7, 5), 3)
    past, future, _ = windows(season, 7, 5).take(np.array([[0, 150]]))
    x = np.append(past[0] - past[0, -1], 1)
    np.testing.assert_allclose(x @ found.weight + past[0, -1], future[0], atol=0.02)
    walk = fit(windows(np.random.default_rng(5).normal(size=61).cumsum(), 19, 5), 1)
    assert np.abs(walk.weight[:-1]).max() < 0.2 and (walk.spread > 0).all()


def returning(rows: int, share: float = 0.8) -> np.ndarray:
    """x_t = share x_(t-1) + noise; its best forecast after h steps is share^h x_t."""
    noise = np.random.default_rng(7).normal(size=rows)
    values = noise.copy()
    for t in range(1, rows):
        values[t] += share * values[t - 1]
    return values


def test_a_series_that_returns_to_its_mean_is_forecast_from_its_level() -> None:
    series = windows(returning(8000), 3, 5)
    found = fit(series, 1, level=True)
    assert ", level" in found.name and found.weight.shape == (5, 5)
    still = np.array([0, 0, 0, 1.0, 0]) @ found.weight  # the change after a window of ones
    np.testing.assert_allclose(1 + still, 0.8 ** np.arange(1, 6), atol=0.05)
    assert found.error < 0.97 * fit(series, 1).error


@pytest.mark.parametrize("level", [False, True])
def test_errors_from_moments_are_those_of_the_forecasts(*, level: bool) -> None:
    found = windows(returning(131))
    weight = np.random.default_rng(3).normal(size=(8 + level, 5))
    past, future, _ = found.take(found.of(1))
    x = np.concatenate([past - past[:, -1:], past[:, -1:][:, :level], np.ones((len(past), 1))], 1)
    want = np.square(x @ weight + past[:, -1:] - future).mean(0)
    np.testing.assert_allclose(moments(found, found.of(1), level=level).errors(weight), want)


def test_few_rows_and_a_random_walk_prove_no_level() -> None:
    assert ", level" not in fit(windows(returning(60), 3, 5), 1, level=True).name
    walk = np.random.default_rng(8).normal(size=3000).cumsum()
    assert ", level" not in fit(windows(walk, 3, 23), 1, level=True).name


def test_a_stretch_is_forecast_by_a_fit_on_windows_that_end_before_it() -> None:
    series = windows(returning(400), 3, 5)
    judged = judge(series, [3])
    form = RidgeForm(3, True, True, 1.0)
    starts = series.of(0)[:, 1]
    rows = starts.max() + 5 - 3
    for k, (fitted, found) in enumerate(zip(judged.fits[:-1], judged.stretches, strict=False), FIRST):
        bounds = [3 + -(-at * rows // STRETCHES) for at in (k, k + 1)]
        before = series.of(0)[starts + 5 <= bounds[0]]
        inside = series.of(0)[(starts >= bounds[0]) & (starts + 5 <= bounds[1])]
        assert {*fitted.windows} == {len(before)} and {*found.windows} == {len(inside)}
        np.testing.assert_allclose(form.weight(fitted), form.weight(moments(series, before, level=True)))
    ends = judged.fits[-1].windows, judged.stretches[-1].windows
    assert [set(one) for one in ends] == [{len(starts)}, {len(series.of(1))}]
    assert len(judged.forms[form]) == STRETCHES - FIRST + 1


def test_a_form_that_is_better_on_one_stretch_alone_is_not_taken() -> None:
    plain = np.array([1.0, 1.2, 0.9, 1.1, 2.0])
    for gains, taken in (((1, 1, 1, 1, 0.3), False), ((0.95, 0.93, 0.96, 0.94, 0.9), True)):
        forms = {RidgeForm(3, level, constant, 1.0): plain for level, constant in KINDS}
        forms[RidgeForm(3, True, True, 1.0)] = plain * gains
        assert FormErrors(forms, [], []).best(3).level == taken


def test_a_longer_lookback_is_taken_only_if_it_helps() -> None:
    season = np.tile(np.random.default_rng(4).normal(size=16), 60)
    noisy = season + 0.1 * np.random.default_rng(5).normal(size=960)
    assert lookback_of(lambda rows: windows(noisy, rows, 4), 8, 100) in (16, 32, 64)
    assert lookback_of(lambda rows: windows(returning(4000), rows, 4), 8, 31) == 8
    assert lookback_of(lambda rows: windows(noisy, rows, 4), 8, 15) == 8


def test_the_lookback_is_not_chosen_by_a_closed_form_that_cannot_read_what_is_known(tmp_path: Path) -> None:
    season = np.tile(np.random.default_rng(4).normal(size=16), 40)
    noisy = season + 0.1 * np.random.default_rng(5).normal(size=640)
    rows = [f"{value:.3f},{n % 3}" for n, value in enumerate(noisy)]
    file = tmp_path / "x.csv"
    file.write_text("\n".join(["sales,holiday", *rows]) + "\n")
    free = Columns(targets=("sales",))
    found = [recipe(file, 4, which).recipe for which in (free._replace(known=("holiday",)), free)]
    known, chosen = (int(text.split("lookback: ")[1].split()[0]) for text in found)
    assert known == 8 < chosen


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("head", [Point, Normal, Student, partial(Quantile, levels=(0.1, 0.5, 0.9))])
def test_before_the_first_update_it_is_the_closed_form_with_the_spread_of_its_errors(
    head: type, *, level: bool
) -> None:
    built, base = head(4), {"base": (7, 5), "level": level}
    assert isinstance(built, RealHead)
    model = ForecastNetwork(LinearForecaster(7, 5), built, normalise="last", **base)
    weight, spread = torch.randn(8 + level, 5), torch.rand(5) + 0.5
    model.begin_with(weight, spread)
    values = torch.randn(3, 7)
    past = Past(values, torch.zeros(3, 12, 0), torch.zeros(3, dtype=torch.long), torch.zeros(3, 7, 0))
    x = torch.cat([values - values[:, -1:], values[:, -1:][:, :level], torch.ones(3, 1)], 1)
    want = x @ weight + values[:, -1:]
    torch.testing.assert_close(model.best(past), want)
    if built.has_quantiles:
        high = model.quantiles(past, torch.tensor([0.9]))[..., 0]
        normal = torch.special.ndtri(torch.tensor(0.9))
        torch.testing.assert_close(high - want, (spread * normal).expand(3, 5), rtol=0.03, atol=0)
    again = ForecastNetwork(LinearForecaster(7, 5), head(4), normalise="last", **base)
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again.best(past), want)


def test_a_run_that_learns_nothing_better_stays_what_it_began_as(tmp_path: Path) -> None:
    walk = np.random.default_rng(6).normal(size=300).cumsum()
    lines = [f"{np.datetime64('2023-01-01') + row},{value:.4f}" for row, value in enumerate(walk)]
    (tmp_path / "x.csv").write_text("date,y\n" + "\n".join(lines) + "\n")
    (tmp_path / "x.yaml").write_text(
        f"task: forecast\ndata: {{file: {tmp_path / 'x.csv'}, lookback: 14, horizon: 7, season: 1}}\n"
        "model: {forecaster: linear, base: linear, head: quantile}\n"
        "training: {max_updates: 12, validate_every: 4, validate_start: true, optimiser: {use: sgd, lr: 3}}\n"
    )
    answer = weft("train", tmp_path / "x.yaml", "--run", tmp_path / "run", code=0)
    assert "the model starts as last value" in answer.err and "validation after update 0" in answer.err
    assert "update 0" in answer.out
    weft("evaluate", tmp_path / "run", "--json", tmp_path / "x.json", code=0)
    found = json.loads((tmp_path / "x.json").read_text())
    still = found["scores"]["MSE"]["baselines"]["last value repeated"]
    assert found["scores"]["MSE"]["value"] == pytest.approx(still, rel=1e-4)
    assert 60 < found["scores"]["coverage"]["value"] < 97
    options = ["model.solve=true", "training.max_updates=null"]
    solved = weft(
        "train", tmp_path / "x.yaml", "--run", tmp_path / "solved", *options, code=0
    )  # needs no end
    assert f"solved without updates; the model is in {tmp_path / 'solved'}" in solved.out
