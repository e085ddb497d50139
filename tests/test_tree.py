"""State trees: picking, repeating and merging rows changes all tensors, the source's only if necessary."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from weft import tree


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
