"""The mean of several seeds has Student's interval."""

import pytest

from weft.tune.retrain import mean_of


def test_three_seeds_have_the_interval_of_a_table() -> None:
    found = mean_of([0.80, 0.86, 0.83])
    # mean 0.83, standard deviation 0.03, t(2) = 4.303, 4.303 * 0.03 / sqrt(3) = 0.074530
    assert found.value == pytest.approx(0.83)
    assert (found.low, found.high) == pytest.approx((0.83 - 0.0745301, 0.83 + 0.0745301), abs=1e-6)
    assert found.seeds == 3


def test_one_seed_has_no_interval() -> None:
    assert str(mean_of([0.5])) == "0.5, 1 seed"
