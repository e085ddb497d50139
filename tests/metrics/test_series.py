"""Baselines of forecasting (repeated, seasonal) and errors against manual calculations."""

import numpy as np
import pytest

from weft.metrics.series import ErrorSums, pinball, repeated, seasonal


def test_repeats() -> None:
    past = np.array([[1.0, 2, 3, 4]])
    assert repeated(past, 2).tolist() == [[4, 4]]
    assert seasonal(past, 5, 3).tolist() == [[2, 3, 4, 2, 3]]
    assert seasonal(past, 2, 9).tolist() == [[4, 4]]


def test_errors_are_means_over_all_values_that_were_measured() -> None:
    sums = ErrorSums(2)
    sums.add(np.array([[1.0, 1], [2, 2]]), np.array([[0.0, np.nan], [2, 5]]))
    sums.add(np.array([[0.0, 0]]), np.array([[1.0, 0]]))
    errors = sums.errors()
    assert errors.values == 5
    assert errors.squared == pytest.approx((1 + 0 + 9 + 1 + 0) / 5)
    assert errors.absolute == pytest.approx((1 + 0 + 3 + 1 + 0) / 5)
    np.testing.assert_allclose(errors.by_step, [2 / 3, 9 / 2])


def test_pinball_by_hand() -> None:
    # Level 0.9: under by 1 costs 2 * 0.9; level 0.1: over by 2 costs 2 * 0.9 * 2.
    got = pinball(np.array([[[5.0, 2.0]]]), np.array([[3.0]]), (0.1, 0.9)).item()
    assert got == pytest.approx((2 * 0.9 * 2 + 2 * 0.9 * 1) / 2)
