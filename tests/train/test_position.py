"""Where a training is: which batches come next, what is due there, and how much of it is done."""

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

from tests.train.toy import settings
from weft.train.position import Position, groups


class Order:
    """Seven batches an epoch: 10, 11, .. in epoch 1."""

    def epoch(self, number: int) -> list[np.ndarray]:
        return [np.array([10 * number + place]) for place in range(7)]


def test_groups_go_through_every_batch_once_from_wherever_they_begin() -> None:
    whole = [10 * epoch + place for epoch in range(9) for place in range(7)]
    for size in (1, 3, 7, 9):
        for epoch, index in ((0, 0), (1, 2), (2, 6), (1, 7)):
            found = list(islice(groups(Order(), Position(epoch=epoch, index=index), size), 4))
            numbers = [int(one[0]) for group in found for one in group.numbers]
            begin = 7 * epoch + index
            assert numbers == whole[begin : begin + len(numbers)]
            for group, following in pairwise(found):
                assert (group.next_epoch, group.next_index) == (following.epoch, following.index)
                assert len(group.numbers) == min(size, 7 - group.index) and group.batches == 7


def test_a_validation_is_due_at_the_end_of_an_epoch_or_after_so_many_updates() -> None:
    after = [Position(0, 0, 0), Position(3, 0, 3), Position(7, 1, 0), Position(8, 1, 1), Position(14, 2, 0)]

    def due(**changes: object) -> list[int]:
        given = settings(validate_every=0, **changes)
        return [one.update for one in after if one.validates(given)]

    assert due() == [7, 14]
    assert due(validate_start=True) == [0, 7, 14]
    every = settings(validate_every=4)
    assert [one.update for one in after if one.validates(every)] == [8]


@pytest.mark.parametrize(
    ("limit", "value", "done"),
    [
        ("max_updates", 12, 9 / 12),
        ("max_epochs", 4, (2 + 3 / 6) / 4),
        ("max_tokens", 1000, 0.7),
        ("max_minutes", 2.0, 30 / 120),
        ("max_cpu_minutes", 1.0, 45 / 60),
    ],
)
def test_the_share_that_is_done_is_that_of_the_limit(limit: str, value: float, done: float) -> None:
    here = Position(9, 2, 3, 6, seconds=30, cpu_seconds=45, tokens=700)
    none = settings(max_updates=0, max_epochs=0, patience=9)
    assert here.done(none) == 0 and not here.end(none)
    given = replace(none, **{limit: value})
    assert here.done(given) == pytest.approx(done) and not here.end(given)
    assert here.done(replace(given, max_updates=10)) == 0.9  # the nearest limit counts
    ended = replace(none, **{limit: value * done / 1.5})
    assert here.done(ended) == 1 and here.end(ended) == limit
