"""State: a tree (tuples and NamedTuples) of tensors whose axis 0 is the batch row.

Everything that a model carries from one step to the next is such a tree: an LSTM's (h, c), a key-value
cache, projected attention keys, a stack of all three. Search repeats and selects its rows without knowing
what it is. A NamedTuple with the class attribute `per_source = True` belongs to a source instead of a
hypothesis: its rows are the sources, so the W hypotheses of a beam share them instead of holding W copies.
Read next: nn/cells/cell.py, search/beam.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

State = Any
"""A tensor, None, or a tuple (also a NamedTuple) of States."""


def tree_map(function: Callable[[Tensor], Tensor], state: State) -> State:
    """Apply `function` to every tensor of a tree."""
    return _walk(function, function, state)


def detach(state: State) -> State:
    """Detach all tensors from the graph, for truncated back-propagation."""
    return tree_map(Tensor.detach, state)


def leaves(state: State) -> Iterator[Tensor]:
    """All tensors of the tree, depth first."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, tuple):
        for part in state:
            yield from leaves(part)


def like(state: State, found: Iterable[Tensor]) -> State:
    """The structure of a tree with other tensors, in the order of `leaves`."""
    rest = iter(found)
    return tree_map(lambda _: next(rest), state)


def take(state: State, rows: Tensor) -> State:
    """The given rows of every tensor, including per-source tensors.

    Args:
        state: a tree in which per-source tensors have as many rows as the others.
        rows: [N] int64 row numbers.

    Example:
        >>> h, c = take((torch.tensor([[1.0], [2.0]]), None), torch.tensor([1, 0, 1]))
        >>> h.tolist(), c
        ([[2.0], [1.0], [2.0]], None)
    """
    return tree_map(lambda leaf: leaf.index_select(0, rows), state)


def fan(state: State, width: int) -> State:
    """Repeat each row `width` times in a row; per-source tensors are not repeated."""
    if width == 1:
        return state
    return _walk(lambda leaf: leaf.repeat_interleave(width, 0), lambda leaf: leaf, state)


def reorder(state: State, rows: Tensor) -> State:
    """The given rows [N] of per-hypothesis tensors; per-source tensors are not changed.

    Row n of the result must belong to the same source as row n did before.
    """
    return _walk(lambda leaf: leaf.index_select(0, rows), lambda leaf: leaf, state)


def keep_sources(state: State, sources: Tensor, width: int) -> State:
    """Keep only the sources of the given numbers [M], each with its `width` rows."""
    offsets = torch.arange(width, device=sources.device)
    rows = (sources[:, None] * width + offsets).flatten()
    return _walk(lambda leaf: leaf.index_select(0, rows), lambda leaf: leaf.index_select(0, sources), state)


def at_step(state: State, time: int) -> State:
    """One step [N, ..] of a tree of [N, T, ..]; per-source tensors are not changed."""
    return _walk(lambda leaf: leaf[:, time], lambda leaf: leaf, state)


def join_steps(parts: Sequence[State]) -> State:
    """Concatenate trees of [N, T, ..] in time; per-source tensors are those of the first."""
    return _join(list(parts), False)


def doubled(least: int, number: int) -> int:
    """The smallest of least, 2 least, 4 least, .. that is not below a number.

    Example:
        >>> doubled(32, 32), doubled(32, 33)
        (32, 64)
    """
    while least < number:
        least *= 2
    return least


def where(mask: Tensor, new: State, old: State) -> State:
    """For each row `new` if the mask [B] is True, else `old`."""
    if isinstance(new, Tensor):
        return torch.where(mask.view(-1, *[1] * (new.dim() - 1)), new, old)
    if new is None:
        return None
    return _like(new, [where(mask, n, o) for n, o in zip(new, old, strict=True)])


def _walk(own: Callable[[Tensor], Tensor], shared: Callable[[Tensor], Tensor], state: State) -> State:
    if isinstance(state, Tensor):
        return own(state)
    if state is None:
        return None
    if isinstance(state, tuple):
        inner = shared if getattr(state, "per_source", False) else own
        return _like(state, [_walk(inner, shared, part) for part in state])
    raise TypeError(f"a state is made of tensors, tuples and None, not of {type(state).__name__}")


def _join(parts: list, shared: bool) -> State:
    first = parts[0]
    if isinstance(first, tuple):
        shared = shared or getattr(first, "per_source", False)
        return _like(first, [_join(list(leaves), shared) for leaves in zip(*parts, strict=True)])
    return first if shared or first is None else torch.cat(parts, 1)


def _like(old: tuple, parts: list) -> tuple:
    return type(old)(*parts) if hasattr(old, "_fields") else tuple(parts)
