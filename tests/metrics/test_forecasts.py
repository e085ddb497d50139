"""Errors in the units of the data, by manual calculation, and their intervals over blocks."""

import numpy as np
import pytest

from weft.metrics.forecasts import blocks_of, naive_error, scores, sums
from weft.metrics.intervals import FEWEST
from weft.metrics.scored import grouped

BEST = np.array([[10.0, 20.0], [8.0, 0.0]])
CAME = np.array([[12.0, np.nan], [4.0, 0.0]])
QUANTILES = np.stack([BEST - 3, BEST, BEST + 3], -1)


def found(count: int = 1, levels: tuple[float, ...] = (0.1, 0.5, 0.9)) -> dict[str, float]:
    rows = sums(BEST, CAME, np.array([2.0, 4.0]), QUANTILES, levels).sum(0)
    own = scores(np.tile(rows, (count, 1)), {"naive": 2 * rows}, season=1, levels=levels, about="x")
    return {one.score.name: one.value for one in own}


def test_scores_are_those_of_their_formulas() -> None:
    got = found()
    # errors 2, 4 and 0; the second value of the first window is missing
    assert got["MAE in units"] == pytest.approx(6 / 3)
    assert got["RMSE in units"] == pytest.approx(np.sqrt((4 + 16 + 0) / 3))
    assert got["sMAPE"] == pytest.approx(100 * (2 * 2 / 22 + 2 * 4 / 12 + 0) / 3)  # 0 for 0 and 0
    assert got["MASE"] == pytest.approx((2 / 2 + 4 / 4 + 0 / 4) / 3)
    assert got["coverage"] == pytest.approx(100 * 2 / 3)  # 12 in 7..13, 4 not in 5..11, 0 in -3..3

    def loss(error: float, level: float) -> float:
        return 2 * max(level * error, (level - 1) * error)

    want = [
        loss(came - quantile, level)
        for came, best in ((12, 10), (4, 8), (0, 0))
        for quantile, level in zip((best - 3, best, best + 3), (0.1, 0.5, 0.9), strict=True)
    ]
    assert got["pinball in units"] == pytest.approx(np.mean(want))


def test_a_baseline_is_scored_as_the_model_is_and_its_pinball_loss_is_its_absolute_error() -> None:
    point = sums(BEST, CAME, np.array([2.0, 4.0])).sum(0)  # without quantiles, as baselines are
    rows = sums(BEST, CAME, np.array([2.0, 4.0]), QUANTILES, (0.1, 0.5, 0.9)).sum(0)[None]
    own = scores(rows, {"naive": point}, season=1, levels=(0.1, 0.5, 0.9), about="x")
    for one in own[:4]:
        assert one.baselines["naive"] == pytest.approx(one.value)  # the same points
    pinball, coverage = own[4:]
    assert pinball.baselines["naive"] == pytest.approx(6 / 3) and not coverage.baselines


def test_a_point_forecast_has_neither_pinball_nor_coverage() -> None:
    rows = sums(BEST, CAME, np.array([2.0, np.nan]))
    own = scores(rows[1:].sum(0)[None], {}, season=1, levels=(), about="x")
    assert [one.score.name for one in own] == ["MAE in units", "RMSE in units", "sMAPE"]  # and no MASE either


@pytest.mark.parametrize("blocks", [1, FEWEST - 1, FEWEST])
def test_few_blocks_have_no_interval(blocks: int) -> None:
    rows = np.tile(sums(BEST, CAME, np.ones(2)).sum(0), (blocks, 1))
    rows[0, 1] += 1  # blocks that are all alike have none either
    score = scores(rows, {}, season=1, levels=(), about="x")[0].score
    assert (score.low is not None) == (blocks == FEWEST)


def test_blocks_hold_neighbouring_origins_of_all_series_or_of_each() -> None:
    chosen = np.array([[0, 7], [0, 8], [0, 9], [1, 7], [1, 8], [1, 9]])
    assert blocks_of(chosen, 2, apart=False).numbers.tolist() == [0, 0, 1, 0, 0, 1]
    assert blocks_of(chosen, 2, apart=True).numbers.tolist() == [0, 0, 1, 2, 2, 3]
    ones = np.ones((6, 1))
    assert grouped(ones, blocks_of(chosen, 2, apart=False).numbers).tolist() == [[4], [2]]


def test_the_unit_of_mase_is_the_naive_error_of_training() -> None:
    assert naive_error(np.array([3.0, 1.0, np.nan, 4.0, 6.0]), 1) == pytest.approx((2 + 2) / 2)
    assert np.isnan(naive_error(np.ones(5), 1)) and np.isnan(naive_error(np.ones(2), 7))
