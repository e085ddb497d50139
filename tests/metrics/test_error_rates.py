"""By simulation: tests reject true null hypotheses at their level, 95 % intervals cover 95 times in 100.

Bounds are exact: a right test passes one of them by chance once in 10,000 times.
"""

import math

import numpy as np
import pytest

from weft.metrics.accuracy import Accuracy
from weft.metrics.intervals import compare_repeated, with_interval
from weft.metrics.numbers import Spearman
from weft.metrics.scored import ratio

TRUE = 0.7
LEVELS = (0.01, 0.05, 0.1)


def most(rate: float, times: int) -> float:
    """The largest share of successes in binomial trials that has a probability of at least 1 in 10,000."""
    left, reached = 1.0, -1
    while left > 1e-4:
        reached += 1
        ways = math.lgamma(times + 1) - math.lgamma(reached + 1) - math.lgamma(times - reached + 1)
        left -= math.exp(ways + reached * math.log(rate) + (times - reached) * math.log(1 - rate))
    return reached / times


def runs(
    chance: np.random.Generator, count: int, seeds: int, equal: float, spread: float
) -> list[np.ndarray]:
    """Runs of one recipe: an item is decided for all alike with probability `equal`, or by each alone."""
    shared, fixed = chance.random(count) < TRUE, chance.random(count) < equal
    found = []
    for _ in range(2 * seeds):
        own = chance.random(count) < np.clip(TRUE + spread * chance.standard_normal(), 0, 1)
        found.append(np.stack([np.where(fixed, shared, own), np.ones(count)], 1))
    return found


def rejected(count: int, seeds: int, equal: float, spread: float, times: int) -> tuple[np.ndarray, float]:
    """The shares of p-values up to each level, and of intervals with 0, of two equal variants."""
    chance, p_values, covered = np.random.default_rng([count, seeds]), [], 0
    for number in range(times):
        both = runs(chance, count, seeds, equal, spread)
        found = compare_repeated(Accuracy(), both[:seeds], both[seeds:], resamples=300, seed=number)
        p_values.append(found.p_value)
        covered += found.low <= 0 <= found.high
    return np.array([np.mean(np.array(p_values) <= level) for level in LEVELS]), covered / times


@pytest.mark.slow
@pytest.mark.parametrize("equal", [0.0, 0.9], ids=["independent", "90 % equal"])
@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [20, 100, 1000])
def test_equal_variants_are_called_different_no_oftener_than_the_level(
    count: int, seeds: int, equal: float
) -> None:
    times = 400
    for spread in (0.0, 0.05) if seeds > 1 else (0.0,):  # with one seed each, only items are random
        found, covered = rejected(count, seeds, equal, spread, times)
        for rate, level in zip(found, LEVELS, strict=True):
            assert rate <= most(level, times), (level, spread)
        assert 1 - covered <= most(0.05, times), spread
        if count == 1000 and equal == 0:  # nor is it needlessly careful where items are many
            assert 1 - found[1] <= most(0.96, times), spread


def test_equal_variants_of_a_hundred_items_are_seldom_called_different() -> None:
    for seeds in (1, 3):
        found, covered = rejected(100, seeds, 0.0, 0.0, 150)
        assert found[1] <= most(0.05, 150) and 1 - covered <= most(0.05, 150)


SKEWED = {
    "share": lambda chance, size: np.stack([chance.random(size) < 0.95, np.ones(size)], 1).astype(float),
    "exponential": lambda chance, size: np.stack([chance.exponential(0.95, size), np.ones(size)], 1),
    "words": lambda chance, size: np.stack(
        [chance.binomial(length := chance.integers(3, 20, size), chance.beta(9.5, 0.5, size)), length], 1
    ).astype(float),
}


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 100, 1000])
@pytest.mark.parametrize("kind", SKEWED)
def test_intervals_of_skewed_items_cover_what_they_say(kind: str, count: int) -> None:
    metric, chance, times, covered = (
        ratio("x", "", higher_is_better=True),
        np.random.default_rng(count),
        1500,
        0,
    )
    for number in range(times):
        found = with_interval(metric, SKEWED[kind](chance, count), resamples=400, seed=number)
        if found.low is not None:
            covered += found.low <= 0.95 <= found.high
    least = 0.92 if count == 20 else 0.93  # 95 items of a hundred: k of 20 leaves no share nearer to 95 %
    assert 1 - covered / times <= most(1 - least, times) and covered / times <= most(0.97, times)


@pytest.mark.slow
@pytest.mark.parametrize("count", [30, 353])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_intervals_of_rank_correlations_cover_what_they_say(correlation: float, count: int) -> None:
    true, times, covered = 600 / math.pi * math.asin(correlation / 2), 600, 0
    chance = np.random.default_rng(count)
    for number in range(times):
        a, other = chance.standard_normal((2, count))
        b = correlation * a + math.sqrt(1 - correlation**2) * other
        found = with_interval(Spearman(), Spearman().statistics(a, b), seed=number)
        assert found.low is not None and found.high is not None
        covered += found.low <= true <= found.high
    assert 1 - covered / times <= most(0.05, times) and covered / times <= most(0.97, times)
