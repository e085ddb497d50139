"""Masks, state trees, probes and shape checks, by hand and by Hypothesis."""

import threading
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import Tensor

from weft import masks, tree
from weft.errors import ShapeError
from weft.probe import probe, record, watching
from weft.shapes import check_shape

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


class Shared(NamedTuple):
    keys: Tensor
    mask: Tensor | None
    per_source = True


class Nest(NamedTuple):
    layers: tuple[tuple[Tensor, Tensor], ...]
    fed: Tensor | None
    source: Shared


def nest(rows: int = 3) -> Nest:
    """Row r contains r everywhere, so results show which row they came from."""
    h = torch.arange(rows).float()[:, None].repeat(1, 2)
    return Nest(((h, h + 10), (h + 20, h + 30)), None, Shared(torch.arange(rows).view(-1, 1, 1) + 100, None))


def firsts(state: tree.State) -> list[list[float]]:
    return [leaf.flatten(1)[:, 0].tolist() for leaf in tree.leaves(state)]


def test_leaves_come_depth_first() -> None:
    assert [leaf[1].flatten()[0].item() for leaf in tree.leaves(nest())] == [1, 11, 21, 31, 101]
    assert list(tree.leaves(None)) == []


def test_tree_map_keeps_the_form() -> None:
    doubled = tree.tree_map(lambda leaf: 2 * leaf, nest())
    assert isinstance(doubled, Nest) and isinstance(doubled.source, Shared)
    assert doubled.fed is None and doubled.source.mask is None
    assert firsts(doubled)[3] == [60, 62, 64]
    with pytest.raises(TypeError, match="a state is made of tensors, tuples and None, not of list"):
        tree.tree_map(lambda leaf: leaf, ([torch.zeros(1)],))


def test_take_takes_rows_of_the_source_too() -> None:
    taken = tree.take(nest(), torch.tensor([2, 2, 0, 1]))
    assert firsts(taken)[0] == [2, 2, 0, 1]
    assert firsts(taken)[4] == [102, 102, 100, 101]


def test_fan_repeats_hypotheses_and_keeps_sources() -> None:
    fanned = tree.fan(nest(), 2)
    assert firsts(fanned)[1] == [10, 10, 11, 11, 12, 12]
    assert firsts(fanned)[4] == [100, 101, 102]
    state = nest()
    assert tree.fan(state, 1) is state


def test_reorder_moves_hypotheses_only() -> None:
    moved = tree.reorder(tree.fan(nest(), 2), torch.tensor([1, 1, 2, 3, 5, 4]))
    assert firsts(moved)[0] == [0, 0, 1, 1, 2, 2]
    assert firsts(moved)[4] == [100, 101, 102]


def test_keep_sources_keeps_all_of_their_hypotheses() -> None:
    state = tree.fan(nest(), 2)
    numbered = state._replace(fed=torch.arange(6.0)[:, None])
    kept = tree.keep_sources(numbered, torch.tensor([2, 0]), 2)
    assert firsts(kept) == [
        [2, 2, 0, 0],
        [12, 12, 10, 10],
        [22, 22, 20, 20],
        [32, 32, 30, 30],
        [4, 5, 0, 1],
        [102, 100],
    ]


def test_where_chooses_row_by_row() -> None:
    old = nest()._replace(source=None)
    new = tree.tree_map(lambda leaf: leaf + 0.5, old)
    chosen = tree.where(torch.tensor([True, False, True]), new, old)
    assert isinstance(chosen, Nest) and chosen.fed is None
    assert firsts(chosen)[0] == [0.5, 1, 2.5]
    assert firsts(chosen)[3] == [30.5, 31, 32.5]


def test_only_inside_the_block() -> None:
    record("gate", torch.zeros(1))
    assert not watching()
    with probe() as seen:
        assert watching()
        record("gate", torch.ones(1))
        record("gate", torch.ones(2))
    record("gate", torch.ones(3))
    assert [tensor.shape[0] for tensor in seen["gate"]] == [1, 2]
    assert not watching()


def test_the_inner_probe_takes_over_and_gives_back() -> None:
    with probe() as outer:
        with probe() as inner:
            record("x", torch.zeros(2))
        record("x", torch.zeros(3))
    assert [len(t) for t in inner["x"]] == [2]
    assert [len(t) for t in outer["x"]] == [3]


def test_an_error_closes_the_probe() -> None:
    with pytest.raises(RuntimeError, match="inside"), probe():
        raise RuntimeError("inside")
    assert not watching()


def test_another_thread_is_not_watched() -> None:
    found = []
    with probe() as seen:
        other = threading.Thread(target=lambda: (record("x", torch.zeros(1)), found.append(watching())))
        other.start()
        other.join()
    assert found == [False] and not seen


def test_a_shape_that_fits_passes() -> None:
    check_shape("x", torch.zeros(2, 3, 5), 2, None, 5)
    check_shape("x", torch.zeros(()))


@pytest.mark.parametrize(
    ("shape", "sizes", "sentence"),
    [
        ((2, 3), (2, 5), r"^x: .*\[2, 5\], got .*\[2, 3\]"),
        ((2, 3), (None, None, 3), r"^x: .*\[any, any, 3\], got .*\[2, 3\]"),
        ((0,), (1,), r"^x: .*\[1\], got .*\[0\]"),
    ],
)
def test_a_shape_that_does_not_fit_is_named(shape: tuple, sizes: tuple, sentence: str) -> None:
    with pytest.raises(ShapeError, match=sentence):
        check_shape("x", torch.zeros(shape), *sizes)
