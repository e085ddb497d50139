"""Rank correlation by its definition, and compared with scipy's if installed."""

import numpy as np
import pytest

from weft.metrics.spearman import ranks, spearman


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
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    chance = np.random.default_rng(5)
    a, b = chance.integers(0, 7, (2, 31)).astype(float)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
