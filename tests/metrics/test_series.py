"""Baselines of forecasting (repeated, seasonal, ridge) against manual calculations and least squares."""

from collections.abc import Iterator

import numpy as np
import pytest

from weft.metrics.series import PENALTIES, ErrorSums, Ridge, pinball, repeated, seasonal


def test_ridge_is_the_penalised_least_squares_solution() -> None:
    generator = np.random.default_rng(3)
    past, future = generator.normal(size=(50, 4)), generator.normal(size=(50, 3))
    future[7, 1] = np.nan  # a window with a gap is left out
    whole = np.isfinite(future).all(1)

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield past[:20], future[:20]
        yield past[20:], future[20:]

    ridge = Ridge(batches, batches)
    assert ridge.penalty in PENALTIES
    # Equal to least squares on data with sqrt(penalty) rows appended; the constant is not penalised.
    x = np.concatenate([(past - past[:, -1:])[whole], np.ones((whole.sum(), 1))], 1)
    y = (future - past[:, -1:])[whole]
    extra = np.sqrt(ridge.penalty) * np.eye(5)[:4]
    want = np.linalg.lstsq(np.concatenate([x, extra]), np.concatenate([y, np.zeros((4, 3))]), rcond=None)[0]
    np.testing.assert_allclose(ridge.weight, want, atol=1e-8)
    new = generator.normal(size=(2, 4))
    got = ridge.forecast(new)
    np.testing.assert_allclose(got, np.c_[new - new[:, -1:], [1, 1]] @ want + new[:, -1:], atol=1e-8)


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


def test_ridge_without_a_whole_window_repeats_the_last_value() -> None:
    past, future = np.arange(12.0).reshape(3, 4), np.array([[1, np.nan], [np.nan, 2], [np.nan, np.nan]])
    ridge = Ridge(lambda: iter([(past, future)]), lambda: iter([(past, future)]))
    np.testing.assert_array_equal(ridge.forecast(past), past[:, -1:].repeat(2, 1))
