"""Rank correlation by its definition, its pseudo-values, and compared with scipy's if installed."""

import numpy as np
import pytest

from weft.metrics.intervals import with_interval
from weft.metrics.spearman import Spearman, ranks


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
