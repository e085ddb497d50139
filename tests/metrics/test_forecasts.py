"""Forecasts without a model, naive errors and blocks, by manual calculation."""

import numpy as np
import pytest

from weft.metrics.forecasts import blocks_of, naive_errors, seasonal
from weft.metrics.scored import grouped


def test_repeats() -> None:
    past = np.array([[1.0, 2, 3, 4]])
    assert seasonal(past, 2, 1).tolist() == [[4, 4]]
    assert seasonal(past, 5, 3).tolist() == [[2, 3, 4, 2, 3]]
    assert seasonal(past, 2, 9).tolist() == [[4, 4]]


def test_blocks_hold_neighbouring_origins_of_all_series_or_of_each() -> None:
    chosen = np.array([[0, 7], [0, 8], [0, 9], [1, 7], [1, 8], [1, 9]])
    assert blocks_of(chosen, 2, apart=False).numbers.tolist() == [0, 0, 1, 0, 0, 1]
    assert blocks_of(chosen, 2, apart=True).numbers.tolist() == [0, 0, 1, 2, 2, 3]
    ones = np.ones((6, 1))
    assert grouped(ones, blocks_of(chosen, 2, apart=False).numbers).tolist() == [[4], [2]]


def test_the_units_of_mase_and_rmsse_are_the_naive_errors_of_training() -> None:
    steps = naive_errors(np.array([3.0, 1.0, np.nan, 4.0, 7.0]), 1)
    assert steps == pytest.approx(((2 + 3) / 2, (4 + 9) / 2))
    for train, season in ((np.ones(5), 1), (np.ones(2), 7)):
        assert np.isnan(naive_errors(train, season)).all()
