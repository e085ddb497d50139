"""Masks: manual calculations on rows of different lengths, and Hypothesis against plain Python lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from weft import masks
from weft.errors import ShapeError

MASK = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
STATES = torch.tensor([[1.0, 2, 3], [4, 99, 99], [5, 6, 99]])[..., None]


def test_by_hand() -> None:
    assert masks.from_lengths(torch.tensor([3, 1, 2]), 3).tolist() == MASK.tolist()
    assert masks.lengths(MASK).tolist() == [3, 1, 2]
    assert masks.last(STATES, MASK).flatten().tolist() == [3, 4, 6]
    assert masks.mean(STATES, MASK).flatten().tolist() == [2, 4, 5.5]
    assert masks.reverse(STATES, MASK)[..., 0].tolist() == [[3, 2, 1], [4, 99, 99], [6, 5, 99]]
    assert masks.strided(MASK, 2).tolist() == [[True, True], [True, False], [True, False]]


def test_real_positions_may_lie_anywhere() -> None:
    scattered = torch.tensor([[False, True, True], [True, False, True], [False, True, False]])
    assert masks.last(STATES, scattered).flatten().tolist() == [3, 99, 6]
    assert masks.mean(STATES, scattered).flatten().tolist() == [2.5, 51.5, 6]
    assert masks.select(STATES, scattered).flatten().tolist() == [2, 3, 4, 99, 6]
    rows = {"full": MASK[:1], "first": MASK, "scattered": scattered}
    for name, mask in rows.items():
        found = masks.facts(mask)
        assert (found.arrangement, found.full, found.empty) == (name, name == "full", -1)
        assert found.places.tolist() == [n for n, real in enumerate(mask.flatten().tolist()) if real]
    assert masks.facts(torch.tensor([[True, False], [False, False]])).empty == 1


def test_the_mean_of_no_position_is_zero() -> None:
    assert masks.mean(torch.ones(1, 3, 2), torch.zeros(1, 3, dtype=torch.bool)).tolist() == [[0, 0]]


def test_the_last_query_sees_every_key() -> None:
    assert masks.causal(3, 3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert masks.causal(2, 4).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert masks.causal(1, 1).tolist() == [[True]]


@given(some.lists(some.lists(some.floats(-9, 9, width=32), min_size=1, max_size=7), min_size=1, max_size=5))
def test_every_row_as_a_plain_list(rows: list[list[float]]) -> None:
    size = max(map(len, rows)) + 1
    mask = masks.from_lengths(torch.tensor([len(row) for row in rows]), size)
    states = torch.tensor([row + [77.0] * (size - len(row)) for row in rows])[..., None]
    assert masks.lengths(mask).tolist() == [len(row) for row in rows]
    assert masks.last(states, mask)[:, 0].tolist() == [row[-1] for row in rows]
    assert masks.mean(states, mask)[:, 0].tolist() == pytest.approx(
        [sum(row) / len(row) for row in rows], rel=1e-5, abs=1e-5
    )
    back = masks.reverse(states, mask)
    assert [r[: len(row)] for r, row in zip(back[..., 0].tolist(), rows, strict=True)] == [
        row[::-1] for row in rows
    ]
    assert torch.equal(masks.reverse(back, mask), states)


def test_a_row_without_a_real_position_is_refused() -> None:
    masks.check_mask(MASK)
    empty = MASK.clone()
    empty[1] = False
    with pytest.raises(ShapeError, match=r"^source mask: "):
        masks.check_mask(empty, what="source mask")


def test_the_oldest_torch_cannot_be_asked_whether_it_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.compiler, "is_exporting", raising=False)  # since PyTorch 2.7
    assert not masks.exporting()
    assert masks.full(MASK[:1]) and not masks.full(MASK)
