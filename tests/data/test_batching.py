"""Batches: every example once per epoch, budgets kept, the order determined by (seed, epoch) alone."""

from itertools import chain, islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slow import leading
from weft.data import batching as module
from weft.data.batching import Batches, ShuffledBatches, filled_groups, length_groups
from weft.data.corpora import corpus
from weft.errors import ConfigError

LENGTHS = np.random.default_rng(3).integers(1, 40, (997, 2))


def lists(batches: object) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 64)
    monkeypatch.setattr(module, "RUN", 8)


@given(
    lengths=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=80),
    max_tokens=st.integers(1, 60),
    max_rows=st.none() | st.integers(1, 6),
    seed=st.integers(0, 5),
    shuffle=st.booleans(),
)
def test_every_example_once_and_no_budget_exceeded(
    lengths: list, max_tokens: int, max_rows: int | None, seed: int, shuffle: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 16)
        patch.setattr(module, "RUN", 4)
        table = np.array(lengths)
        epoch = Batches(table, max_tokens=max_tokens, max_rows=max_rows, seed=seed, shuffle=shuffle).epoch(1)
        batches = lists(epoch)
        assert sorted(chain.from_iterable(batches)) == list(range(len(lengths)))
        assert len(batches) == len(epoch)
        for batch in batches:
            assert batch
            if len(batch) > 1:
                with_eos = table[batch] + 1
                assert with_eos[:, 1].sum() <= max_tokens
                assert len(batch) * with_eos.max() <= 2 * max_tokens
                assert max_rows is None or len(batch) <= max_rows


def test_a_batch_is_closed_only_when_it_must_be() -> None:
    # Targets with eos: 2 2 2 2 2, 3 3 3, 10. Budget 10: five rows of 2, three of 3, one of 10.
    lengths = np.array([[1, 1]] * 5 + [[2, 2]] * 3 + [[3, 9]])
    batches = lists(Batches(lengths, max_tokens=10, seed=0, shuffle=False).epoch(0))
    assert batches == [[0, 1, 2, 3, 4], [5, 6, 7], [8]]
    # A source of 7 (8 with eos) makes every row 8 long: 20 cells hold two rows.
    lengths = np.array([[7, 1]] * 5)
    assert [len(batch) for batch in Batches(lengths, max_tokens=10, seed=0).epoch(0)] in (
        [2, 2, 1],
        [2, 1, 2],
        [1, 2, 2],
    )


def test_batches_of_equal_size_have_a_new_order_each_epoch() -> None:
    one, other = ShuffledBatches(23, 5, seed=7), ShuffledBatches(23, 5, seed=8)
    epochs = [list(chain.from_iterable(lists(one.epoch(number)))) for number in range(3)]
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0] and lists(one.epoch(0)) != lists(other.epoch(0))
    assert lists(one.epoch(2)) == lists(ShuffledBatches(23, 5, seed=7).epoch(2))
    few = [lists(ShuffledBatches(23, 5, seed=7, most=7).epoch(number)) for number in range(9)]
    assert {len(batch) for epoch in few for batch in epoch} == {5, 2}
    assert {number for epoch in few for batch in epoch for number in batch} == set(range(23))


@given(lengths=st.lists(st.integers(0, 9), max_size=40), limit=st.integers(1, 23))
def test_groups_by_length_are_as_large_as_they_may_be(lengths: list[int], limit: int) -> None:
    groups, padded = list(length_groups(lengths, limit)), [max(1, length) for length in lengths]
    full = list(filled_groups(lengths, limit))
    for found in (groups, full):
        flat = [lengths[number] for number in chain.from_iterable(found)]
        assert flat == sorted(lengths) and len(set(chain.from_iterable(found))) == len(lengths)
    for group, following in pairwise(groups):
        assert len(group) == 1 or len(group) * padded[group[-1]] <= limit
        assert (len(group) + 1) * padded[following[0]] > limit
    assert all(len(group) == 1 or len(group) * padded[group[-1]] <= limit for group in groups)
    for group in full[:-1]:
        before = (len(group) - 1) * lengths[group[-2]] if group[1:] else 0
        assert before < limit <= len(group) * lengths[group[-1]]


@pytest.mark.usefixtures("small_blocks")
def test_going_on_from_any_position_gives_the_batches_of_the_unbroken_run() -> None:
    unbroken = lists(Batches(LENGTHS, max_tokens=200, seed=7).epoch(2))
    assert len(unbroken) > 100
    for index in [0, 1, 2, 7, 50, 51, len(unbroken) - 1, len(unbroken)]:
        later = Batches(LENGTHS.copy(), max_tokens=200, seed=7).epoch(2)  # as after a restart
        assert lists(islice(iter(later), index, None)) == unbroken[index:]
    assert [later[index].tolist() for index in range(len(later))] == unbroken
    assert later[-1].tolist() == unbroken[-1]
    with pytest.raises(IndexError, match=f"batch {len(unbroken)} of {len(unbroken)}"):
        later[len(unbroken)]


@pytest.mark.usefixtures("small_blocks")
def test_the_order_depends_on_seed_and_epoch_and_nothing_else() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return lists(Batches(LENGTHS, max_tokens=200, seed=seed).epoch(epoch))

    first = order(1, 0)
    np.random.default_rng(5).random(3)
    assert order(1, 0) == first
    assert order(1, 1) != first
    assert order(2, 0) != first
    plan = Batches(LENGTHS, max_tokens=200, seed=1)
    plan.epoch(3)[5]
    assert lists(plan.epoch(0)) == first


def test_batches_of_two_epochs_hold_different_company() -> None:
    plan = Batches(np.full((1000, 2), 9), max_tokens=100, seed=1)
    pairs = [{frozenset(batch) for batch in lists(plan.epoch(number))} for number in (0, 1)]
    assert not pairs[0] & pairs[1]


def test_without_shuffling_every_epoch_is_the_same_from_short_to_long() -> None:
    plan = Batches(LENGTHS, max_tokens=200, seed=1, shuffle=False)
    assert (
        lists(plan.epoch(0))
        == lists(plan.epoch(5))
        == lists(Batches(LENGTHS, max_tokens=200, seed=9, shuffle=False).epoch(0))
    )
    longest = [int(LENGTHS[batch, 1].max()) for batch in plan.epoch(0)]
    assert longest[0] < 10
    assert longest[-1] == 39


@pytest.mark.parametrize("target", leading(["ru", "es", "de"]))
def test_nine_cells_in_ten_are_real_on_the_embedded_corpus(target: str) -> None:
    # Words and punctuation instead of subwords: about as many, without training a vocabulary.
    pairs = corpus("libreoffice-help", "en", target, "train")
    lengths = np.array([[1 + len(side) // 4 for side in pair[1:]] for pair in pairs])
    lengths = lengths[(lengths <= 100).all(1)]
    for max_tokens in (1000, 2000, 4096):
        plan = Batches(lengths, max_tokens=max_tokens, seed=1)
        statistics = plan.statistics()
        assert statistics.fill >= 0.9
        assert statistics.target_tokens > 0.93 * max_tokens
        seen = np.sort(np.concatenate(list(plan.epoch(0))))
        assert np.array_equal(seen, np.arange(len(lengths)))


def test_statistics_by_hand() -> None:
    # Rows 0 and 1, with eos: 2+3 and 3+3 real of 2 x (3+3) cells; row 2 alone: 5+9, all real.
    plan = Batches(np.array([[1, 2], [2, 2], [4, 8]]), max_tokens=9, seed=0)
    assert plan.statistics() == (2, 1.5, 7.5, (11 + 14) / (12 + 14))


@pytest.mark.slow
def test_an_epoch_of_two_million_examples_holds_one_block_and_starts_fast() -> None:
    lengths = np.random.default_rng(1).integers(5, 40, (2_200_000, 2), dtype=np.int32)
    import tracemalloc

    plan = Batches(lengths, max_tokens=4096, seed=1)
    tracemalloc.start()
    batches = plan.epoch(0)
    assert len(batches) > 8_000
    first = batches[len(batches) - 1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(first)
    assert peak < 150 * 2**20  # a block is a million examples: 16 MB per column of numbers


@pytest.mark.parametrize(
    ("lengths", "settings", "message"),
    [
        (LENGTHS, {"max_tokens": 0}, "max_tokens.*got 0"),
        (LENGTHS, {"max_tokens": 9, "max_rows": 0}, "max_rows"),
        (LENGTHS[:0], {"max_tokens": 9}, "at least one example"),
    ],
)
def test_a_budget_or_a_set_that_holds_nothing_is_refused(
    lengths: np.ndarray, settings: dict, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Batches(lengths, seed=1, **settings)
