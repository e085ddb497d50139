"""Masks are bool, True = real (not padding), everywhere in Weft.

Read next: nn/attention.py, which applies masks to scores.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from weft.errors import ShapeError
from weft.shapes import exporting

_kept: ContextVar[bool] = ContextVar("kept", default=False)


def from_lengths(lengths: Tensor, size: int) -> Tensor:
    """The mask of rows with the given lengths, padded at the end.

    Args:
        lengths: [B] int.
        size: S, at least the longest.

    Returns:
        [B, S] bool.

    Example:
        >>> from_lengths(torch.tensor([1, 3]), 3).tolist()
        [[True, False, False], [True, True, True]]
    """
    return torch.arange(size, device=lengths.device)[None] < lengths[:, None]


def lengths(mask: Tensor) -> Tensor:
    """Number of real positions per row: [B, S] bool to [B] int64."""
    return mask.sum(1)


def causal(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """[T, S] bool: the last query sees all keys, the one before it all but the last, and so on."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def last(states: Tensor, mask: Tensor) -> Tensor:
    """The state at each row's last real position: [B, S, D] and [B, S] to [B, D]."""
    index = (mask.shape[1] - 1 - mask.flip(1).int().argmax(1)).view(-1, 1, 1)
    return states.gather(1, index.expand(-1, 1, states.shape[2])).squeeze(1)


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean over each row's real positions: [B, S, D] and [B, S] to [B, D]."""
    weights = mask.to(states.dtype)[..., None]
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def reverse(states: Tensor, mask: Tensor) -> Tensor:
    """Reverse the real positions of each row; padding stays in place.

    Args:
        states: [B, S, D]; mask: [B, S] with the real positions first.
    """
    position = torch.arange(mask.shape[1], device=mask.device)[None]
    count = mask.sum(1, keepdim=True)
    index = torch.where(position < count, count - 1 - position, position)
    places = index + mask.shape[1] * torch.arange(mask.shape[0], device=mask.device)[:, None]
    # whole rows: `gather` looks for each feature by itself and took seven times as long
    return states.flatten(0, 1).index_select(0, places.flatten()).view(states.shape)


def full(mask: Tensor) -> bool:
    """Whether all positions are real; False in an exported graph, which must hold for padding as well."""
    return not exporting() and not _kept.get() and bool(mask.all())


@contextmanager
def kept() -> Iterator[None]:
    """No mask counts as full in this block, so a state has the same tensors as in an exported graph."""
    before = _kept.set(True)
    try:
        yield
    finally:
        _kept.reset(before)


def check_mask(mask: Tensor, *, what: str = "mask") -> None:
    """Check that each row has a real position; otherwise softmax would give NaN.

    Raises:
        ShapeError: names the first row without one.
    """
    if exporting():  # a graph cannot depend on values
        return
    empty = ~mask.any(1)
    if bool(empty.any()):
        row = int(empty.int().argmax())
        raise ShapeError(f"{what}: row {row} has no real position; give each row at least one")
