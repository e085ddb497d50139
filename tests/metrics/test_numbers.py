"""Scores of numbers: by hand, and against utilsforecast and scikit-learn."""

import numpy as np
import pytest
import torch

from weft.errors import DataError
from weft.metrics.intervals import compare, compare_repeated, with_interval
from weft.metrics.numbers import (
    R2,
    Crps,
    ForecastWindows,
    Mae,
    Mase,
    Mse,
    Pinball,
    Rmse,
    Rmsle,
    Rmsse,
    Smape,
    Spearman,
    Wape,
    ranks,
)
from weft.metrics.probabilities import Bits, Perplexity
from weft.metrics.scored import ComparedOutputs

TRUE = np.array([[3.0, 5.0], [2.0, np.nan]])
BEST = np.array([[4.0, 3.0], [2.0, 9.0]])  # errors 1, 2, 0; the last value was not measured


def test_scores_are_those_of_their_formulas() -> None:
    known = ForecastWindows(BEST, naive=np.array([2.0, 4.0]), naive_squared=np.array([4.0, 16.0]))
    wanted = {
        Mae(): 3 / 3,
        Mse(): 5 / 3,
        Rmse(): (5 / 3) ** 0.5,
        Smape(): 100 * (2 / 7 + 4 / 8 + 0) / 3,
        Wape(): 100 * 3 / 10,
        Rmsle(): ((np.log(5 / 4) ** 2 + np.log(4 / 6) ** 2) / 3) ** 0.5,
        R2(): 1 - 5 / ((1 / 3) ** 2 + (5 / 3) ** 2 + (4 / 3) ** 2),  # mean 10 / 3
        Mase(): (1 / 2 + 2 / 2 + 0) / 3,
        Rmsse(): ((1 / 4 + 4 / 4 + 0) / 3) ** 0.5,
        Pinball(): 3 / 3,  # of a median: the absolute error
        Crps(): 3 / 10,
    }
    for metric, value in wanted.items():
        assert metric(known, TRUE).value == pytest.approx(value), metric
        assert metric.higher_is_better == isinstance(metric, R2)


def test_pinball_and_crps_of_quantiles_are_twice_the_mean_loss_by_value_and_by_size() -> None:
    quantiles = np.stack([BEST - 1, BEST, BEST + 2], -1)
    levels = (0.1, 0.5, 0.9)

    def loss(true: float, quantile: float, level: float) -> float:
        return max(level * (true - quantile), (level - 1) * (true - quantile))

    wanted = np.mean([[2 * loss(true, best + by, level) for by, level in zip((-1, 0, 2), levels, strict=True)]
                      for true, best in ((3, 4), (5, 3), (2, 2))])  # fmt: skip
    assert Pinball()(ForecastWindows(BEST, quantiles, levels), TRUE).value == pytest.approx(wanted)
    assert Crps()(ForecastWindows(BEST, quantiles, levels), TRUE).value == pytest.approx(wanted * 3 / 10)


def test_series_that_never_changed_have_no_scaled_error() -> None:
    some = ForecastWindows(BEST, naive=np.array([np.nan, 4.0]), naive_squared=np.array([np.nan, 16.0]))
    none = ForecastWindows(BEST, naive=np.full(2, np.nan), naive_squared=np.full(2, np.nan))
    for metric in (Mase(), Rmsse()):
        assert metric(some, TRUE).value == 0 and np.isnan(metric(none, TRUE).value)
    assert Smape()([0.0, 2.0], [0.0, 2.0]).value == 0


def test_a_forecast_that_is_no_number_makes_the_score_none() -> None:
    for metric in (Mae(), Mse(), Smape(), Crps(), Spearman()):
        assert np.isnan(metric([np.nan, 1.0], [2.0, 1.0]).value), metric
    assert (
        np.isnan(Smape()([np.inf, 1.0], [2.0, 1.0]).value)
        and Mae()([np.inf, 1.0], [2.0, 1.0]).value == np.inf
    )
    for metric in (Perplexity(), Bits()):  # of no tokens
        assert np.isnan(metric([1.0, 2.0], [0, 0]).value), metric


def test_they_are_those_of_other_libraries() -> None:
    losses = pytest.importorskip(
        "utilsforecast.losses", reason="utilsforecast is not installed: pip install --group metrics-tests"
    )
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is not installed: pip install --group metrics-tests"
    )
    import pandas as pd

    chance = np.random.default_rng(5)
    past, true, best = chance.random(40) * 9, chance.random(23) * 9, chance.random(23) * 9
    levels = (0.1, 0.5, 0.9)
    quantiles = np.sort(chance.random((23, 3)) * 9, 1)
    table = {"unique_id": 1, "ds": np.arange(23), "y": true, "m": best}
    table |= {f"q{n}": quantiles[:, n] for n in range(3)}
    frame = pd.DataFrame(table)
    train = pd.DataFrame({"unique_id": 1, "ds": np.arange(-40, 0), "y": past})

    def theirs(name: str, **more: object) -> float:
        return float(getattr(losses, name)(frame, ["m"], **more)["m"].iloc[0])

    for season in (1, 7):
        steps = past[season:] - past[:-season]
        naive, squared = (np.tile(one.mean(), 23) for one in (np.abs(steps), steps**2))
        given = ForecastWindows(best[:, None], naive=naive, naive_squared=squared), true[:, None]
        assert Mase()(*given).value == pytest.approx(theirs("mase", seasonality=season, train_df=train))
        assert Rmsse()(*given).value == pytest.approx(theirs("rmsse", seasonality=season, train_df=train))
    assert Mae()(best, true).value == pytest.approx(theirs("mae"))
    assert Mse()(best, true).value == pytest.approx(theirs("mse"))
    assert Rmse()(best, true).value == pytest.approx(theirs("rmse"))
    assert Smape()(best, true).value == pytest.approx(200 * theirs("smape"))
    assert Wape()(best, true).value == pytest.approx(100 * theirs("nd"))
    assert Rmsle()(best, true).value == pytest.approx(metrics.root_mean_squared_log_error(true, best))
    assert R2()(best, true).value == pytest.approx(metrics.r2_score(true, best))
    crps = losses.scaled_crps(frame, {"m": [f"q{n}" for n in range(3)]}, np.array(levels))["m"].iloc[0]
    found = Crps()(ForecastWindows(best[:, None], quantiles[:, None], levels), true[:, None]).value
    assert found == pytest.approx(float(crps))


def test_what_a_score_lacks_is_said() -> None:
    with pytest.raises(DataError, match=r"mase: expected ForecastWindows with naive, got none"):
        Mase()(BEST, TRUE)
    with pytest.raises(DataError, match=r"rmsse: expected ForecastWindows with naive_squared, got none"):
        Rmsse()(BEST, TRUE)
    with pytest.raises(DataError, match=r"shape of the references, \[2, 2\], got \[2\]"):
        Mae()(BEST[:, 0], TRUE)
    with pytest.raises(DataError, match="expected numbers, or rows of as many numbers each"):
        Mae()(torch.ones(2, requires_grad=True), [1.0, 2.0])


def test_a_score_without_a_unit_or_a_value_is_none_and_proves_nothing() -> None:
    best, nothing = np.random.default_rng(1).random((12, 3)), np.zeros((12, 3))
    for metric, true in (
        (Wape(), nothing),
        (Crps(), nothing),
        (R2(), nothing + 0.1),
        (Mae(), nothing * np.nan),
    ):
        assert np.isnan(metric(best, true).value), metric
        found = compare(metric, best, best + 1, true)
        assert (found.p_value, found.low, found.high) == (1.0, -np.inf, np.inf), metric
    scaled = [ForecastWindows(one, naive=np.zeros(12)) for one in (best, best + 1)]
    rows = [Mase().statistics(one, nothing) for one in scaled]
    assert compare_repeated(Mase(), [rows[0]] * 2, [rows[1]] * 2).p_value == 1


def test_a_unit_that_one_item_alone_has_allows_no_interval() -> None:
    best, true, naive = np.random.default_rng(1).random((12, 3)), np.zeros((12, 3)), np.zeros(12)
    true[3], naive[3] = 1, 1
    for metric, forecasts in ((Wape(), best), (Mase(), ForecastWindows(best, naive=naive))):
        found = ComparedOutputs(forecasts, true, reads="numbers").scored(metric)
        assert np.isfinite(found.value) and found.score.low is None
        assert "no interval: some resamples have no score" in found.lines()[1]


def test_r2_of_large_numbers_is_that_of_small_ones() -> None:
    steps, errors = np.arange(20.0), 0.5 * (-1.0) ** np.arange(20)
    small = R2()(steps + errors, steps).value
    assert R2()(1e8 + steps + errors, 1e8 + steps).value == pytest.approx(small, rel=1e-6)  # was 3e-4 off


def test_rows_that_differ_and_texts_are_refused() -> None:
    with pytest.raises(DataError, match="mae: hypotheses: expected numbers, or rows of as many numbers each"):
        Mae()([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(DataError, match="hypotheses: expected a number for each item, got a text at 1"):
        Mae()([1.0, "2"], [1.0, 2.0])
    with pytest.raises(DataError, match="mase: expected naive of 2 windows, got 3"):
        Mase()(ForecastWindows(BEST, naive=np.ones(3)), TRUE)


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return Spearman()(a, b).value / 100


def test_without_ties_it_is_the_formula_of_squared_differences() -> None:
    chance = np.random.default_rng(3)
    a, b = chance.permutation(13).astype(float), chance.permutation(13).astype(float)
    wanted = 1 - 6 * ((a - b) ** 2).sum() / (13 * (13**2 - 1))
    assert spearman(a, np.exp(b)) == pytest.approx(wanted, abs=1e-12)


def test_order_is_all_that_counts() -> None:
    a = np.array([1.0, 5.0, 5.0, 9.0])
    assert ranks(a).tolist() == [1, 2.5, 2.5, 4]
    assert spearman(a, a**3) == pytest.approx(1) and spearman(a, -a) == pytest.approx(-1)
    assert spearman(a, np.ones(4)) == 0


def test_it_is_scipys() -> None:
    stats = pytest.importorskip(
        "scipy.stats", reason="scipy is not installed: pip install --group metrics-tests"
    )
    chance = np.random.default_rng(5)
    a, b = chance.integers(0, 7, (2, 31)).astype(float)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_pseudo_values_are_derivatives_by_the_weight_of_an_item() -> None:
    chance, many = np.random.default_rng(7), 1000
    a, b = chance.integers(0, 9, 23).astype(float), chance.standard_normal(23)
    rows = Spearman().statistics(a, b) * 23
    assert rows[:, 1] == pytest.approx(1) and rows[:, 0].mean() == pytest.approx(spearman(a, b))
    for item in (0, 5, 22):
        copies = np.repeat(np.arange(23), [many + (n == item) for n in range(23)])
        slope = (spearman(a[copies], b[copies]) - spearman(a, b)) * many
        assert rows[item, 0] - spearman(a, b) == pytest.approx(23 * slope, rel=0.01, abs=0.01)


def test_values_that_were_not_measured_have_no_rank() -> None:
    found = Spearman()(np.array([[3.0, 9.0], [1.0, 2.0]]), np.array([[30.0, np.nan], [10.0, 20.0]]))
    assert found.value == pytest.approx(100) and found.size == 2


def test_lists_in_the_same_order_have_no_interval() -> None:
    values = np.arange(30.0)
    found = with_interval(Spearman(), Spearman().statistics(values, values))
    assert found.value == pytest.approx(100) and found.low is None
