"""The test between variants with several seeds, by simulation: its rate of false positives."""

import numpy as np
import pytest

from weft.errors import ConfigError
from weft.metrics.accuracy import Accuracy
from weft.metrics.bootstrap import compare_statistics
from weft.metrics.repeated import compare_repeated


def rows(chance: np.random.Generator, share: float, count: int = 211) -> np.ndarray:
    return np.stack([(chance.random(count) < share).astype(float), np.ones(count)], 1)


def test_with_one_run_each_it_is_the_paired_bootstrap_of_items() -> None:
    chance = np.random.default_rng(1)
    one, other = rows(chance, 0.5), rows(chance, 0.6)
    found, known = compare_repeated(Accuracy(), [one], [other]), compare_statistics(Accuracy(), one, other)
    assert found.value == pytest.approx(known.difference)
    assert found.p_value == pytest.approx(known.p_value, abs=0.02)
    assert found.low < found.value < found.high


def test_variants_that_differ_by_their_seeds_alone_are_seldom_called_different() -> None:
    # each run has its own noise, from one distribution for both variants: neither is better
    chance, seeds, wrong, by_items = np.random.default_rng(7), 3, 0, 0
    for _ in range(100):
        first, second = (
            [rows(chance, 0.6 + 0.08 * chance.standard_normal()) for _ in range(seeds)] for _ in range(2)
        )
        wrong += compare_repeated(Accuracy(), first, second, resamples=200).p_value < 0.05
        by_items += compare_statistics(Accuracy(), first[0], second[0], resamples=200).p_value < 0.05
    assert wrong <= 20 < 30 <= by_items


def test_a_real_difference_is_found() -> None:
    chance = np.random.default_rng(3)
    first, second = ([rows(chance, share) for _ in range(3)] for share in (0.5, 0.7))
    found = compare_repeated(Accuracy(), first, second)
    assert found.p_value < 0.05 and found.low > 0


def test_other_items_are_refused() -> None:
    chance = np.random.default_rng(3)
    with pytest.raises(ConfigError, match="same test items"):
        compare_repeated(Accuracy(), [rows(chance, 0.5)], [rows(chance, 0.5, 13)])
