"""Scores of numbers: by hand, and against utilsforecast and scikit-learn."""

import numpy as np
import pytest

from weft.errors import DataError
from weft.metrics.numbers import R2, Crps, ForecastWindows, Mae, Mase, Rmse, Rmsle, Rmsse, Wape

TRUE = np.array([[3.0, 5.0], [2.0, np.nan]])
BEST = np.array([[4.0, 3.0], [2.0, 9.0]])  # errors 1, 2, 0; the last value was not measured


def test_scores_are_those_of_their_formulas() -> None:
    known = ForecastWindows(BEST, naive=np.array([2.0, 4.0]), naive_squared=np.array([4.0, 16.0]))
    wanted = {
        Mae(): 3 / 3,
        Rmse(): (5 / 3) ** 0.5,
        Wape(): 100 * 3 / 10,
        Rmsle(): ((np.log(5 / 4) ** 2 + np.log(4 / 6) ** 2) / 3) ** 0.5,
        R2(): 1 - 5 / ((1 / 3) ** 2 + (5 / 3) ** 2 + (4 / 3) ** 2),  # mean 10 / 3
        Mase(): (1 / 2 + 2 / 2 + 0) / 3,
        Rmsse(): ((1 / 4 + 4 / 4 + 0) / 3) ** 0.5,
        Crps(): 3 / 10,
    }
    for metric, value in wanted.items():
        assert metric(known, TRUE).value == pytest.approx(value), metric
        assert metric.higher_is_better == isinstance(metric, R2)


def test_crps_of_quantiles_is_twice_the_mean_pinball_loss_over_the_size() -> None:
    quantiles = np.stack([BEST - 1, BEST, BEST + 2], -1)
    levels = (0.1, 0.5, 0.9)

    def loss(true: float, quantile: float, level: float) -> float:
        return max(level * (true - quantile), (level - 1) * (true - quantile))

    wanted = np.mean([[2 * loss(true, best + by, level) for by, level in zip((-1, 0, 2), levels, strict=True)]
                      for true, best in ((3, 4), (5, 3), (2, 2))]) * 3 / 10  # fmt: skip
    assert Crps()(ForecastWindows(BEST, quantiles, levels), TRUE).value == pytest.approx(wanted)


def test_they_are_those_of_other_libraries() -> None:
    losses = pytest.importorskip("utilsforecast.losses", reason="utilsforecast, for this comparison alone")
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn, for this comparison alone")
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
    assert Rmse()(best, true).value == pytest.approx(theirs("rmse"))
    assert Wape()(best, true).value == pytest.approx(100 * theirs("nd"))
    assert Rmsle()(best, true).value == pytest.approx(metrics.root_mean_squared_log_error(true, best))
    assert R2()(best, true).value == pytest.approx(metrics.r2_score(true, best))
    crps = losses.scaled_crps(frame, {"m": [f"q{n}" for n in range(3)]}, np.array(levels))["m"].iloc[0]
    found = Crps()(ForecastWindows(best[:, None], quantiles[:, None], levels), true[:, None]).value
    assert found == pytest.approx(float(crps))


def test_what_a_score_lacks_is_said() -> None:
    with pytest.raises(DataError, match=r"mase: expected ForecastWindows with naive, got none"):
        Mase()(BEST, TRUE)
    with pytest.raises(DataError, match=r"shape of the references, \[2, 2\], got \[2\]"):
        Mae()(BEST[:, 0], TRUE)
