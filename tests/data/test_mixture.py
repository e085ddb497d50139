"""A mixture takes each corpus's share, in an order determined by seed and epoch."""

import numpy as np
import pytest

from weft.data import mixture as module
from weft.data.mixture import MixedExamples, Mixture
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


def test_the_examples_that_come_once_more_are_others_in_each_epoch() -> None:
    plan = mixture(3)  # 18 of the 24
    chosen = [{n for n in flat(plan, epoch) if n >= 3} for epoch in range(9)]
    assert all(len(one) == 18 for one in chosen) and chosen[0] != chosen[1]
    assert set().union(*chosen) == set(range(3, 27))


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, other = mixture(3), mixture(3)
    other.epoch(0)
    assert flat(one, 5) == flat(other, 5) != flat(one, 6)
    assert flat(one, 5) != flat(mixture(3, seed=8), 5)


def test_a_wrong_temperature_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"temperature: "):
        mixture(0.5)


def test_weights_multiply_sizes() -> None:
    # (8 * 3)^(1/2) and 24^(1/2) are equal; at T = 1 the shares of 6 * 3 and 24 are as 3 to 4
    def counts(weight: float, temperature: float) -> list[int]:
        return Mixture(
            [SMALL, LARGE],
            temperature=temperature,
            weights=[weight, 1.0],
            max_tokens=20,
            max_rows=None,
            seed=1,
        ).counts

    assert counts(8, 2) == [14, 13] or counts(8, 2) == [13, 14]
    assert counts(6, 1) == [12, 15]  # 27 * 3 / 7 = 11.57
    assert counts(0.001, 1) == [1, 26]  # of a share below one half an example remains
    with pytest.raises(ConfigError, match="weights: "):
        counts(0, 1)


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("count", [5, 23, 24, 41, 47, 70])
def test_each_example_comes_as_often_as_another_or_once_more(
    runs: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in runs of neighbours, as for a corpus of more than a million; 23 ends in an incomplete run."""
    if runs:
        monkeypatch.setattr(module, "BLOCK", 11)
        monkeypatch.setattr(module, "RUN", 5)
    lengths = np.arange(46).reshape(23, 2)
    drawn = MixedExamples([SMALL, lengths], [4, count], np.random.default_rng(3))
    places = np.arange(len(drawn))
    assert len(drawn) == 4 + count
    examples = drawn.examples(places)
    times = np.bincount(examples, minlength=26)
    assert sorted(times[:3]) == [1, 1, 2]
    assert times[3:].sum() == count and times[3:].max() - times[3:].min() <= 1
    assert set(times[3:]) <= {count // 23, count // 23 + 1}
    expected = np.concatenate([SMALL, lengths])[examples]
    assert (drawn[places] == expected).all()
    shuffled = np.random.default_rng(4).permutation(places)
    assert (drawn.examples(shuffled) == examples[shuffled]).all()


def test_a_hundred_million_examples_are_not_listed() -> None:
    lengths = np.broadcast_to(np.array([[3, 4]]), (10**8, 2))
    drawn = MixedExamples([lengths, SMALL], [7 * 10**7, 10**6], np.random.default_rng(1))
    assert sum(one.nbytes for one in drawn._more) < 2**20
    assert drawn[np.array([5, 7 * 10**7 - 1, 7 * 10**7])].tolist() == [[3, 4], [3, 4], [4, 4]]
