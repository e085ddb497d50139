"""A mixture gives each corpus its share, in an order that seed and epoch alone decide."""

import numpy as np
import pytest

from weft.data.mixture import Mixture
from weft.errors import ConfigError

SMALL, LARGE = np.full((3, 2), 4), np.full((24, 2), 4)


def mixture(temperature: float, seed: int = 7) -> Mixture:
    return Mixture([SMALL, LARGE], temperature=temperature, max_tokens=20, max_rows=None, seed=seed)


def flat(plan: Mixture, epoch: int) -> list[int]:
    return np.concatenate(list(plan.epoch(epoch))).tolist()


def test_at_temperature_one_each_example_comes_once() -> None:
    assert sorted(flat(mixture(1), 0)) == list(range(27))


@pytest.mark.parametrize(("temperature", "counts"), [(1, [3, 24]), (1e9, [13, 14]), (3, [9, 18])])
def test_shares_are_the_sizes_to_one_over_the_temperature(temperature: float, counts: list[int]) -> None:
    # T = 3: the cube roots of 3 and 24 are as 1 to 2, and of 27 examples that is 9 and 18.
    plan = mixture(temperature)
    assert plan.counts == counts
    drawn = flat(plan, 4)
    assert [sum(n < 3 for n in drawn), sum(n >= 3 for n in drawn)] == counts


def test_a_small_corpus_is_gone_through_evenly() -> None:
    times = np.bincount([n for n in flat(mixture(1e9), 2) if n < 3])
    assert times.max() - times.min() <= 1


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, other = mixture(3), mixture(3)
    other.epoch(0)
    assert flat(one, 5) == flat(other, 5) != flat(one, 6)
    assert flat(one, 5) != flat(mixture(3, seed=8), 5)


def test_a_wrong_temperature_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"temperature: 0\.5 came, at least 1 is needed"):
        mixture(0.5)
