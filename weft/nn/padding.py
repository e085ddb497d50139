"""Brings a mask and the padding beside it into the one form that kernels read: real positions first.

Cells and stacks take a mask with padding anywhere (in front, behind, in between) and with anything in it.
Kernels skip padding or hold the state there, which needs the real positions first and padding that stays
finite. `settle` makes that so in one place, and `restore` puts the outputs back.
Read next: cells/cell.py, which calls both around every kernel.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.errors import ShapeError
from weft.nn.kernels import choice

HARMLESS = 1e18  # no product of a padded position with a weight overflows below this norm of all of x

Arrangement = Literal["full", "first", "scattered"]


def read_mask(mask: Tensor, x: Tensor, name: str) -> Tensor:
    """A mask as bool, True = real; integers such as a tokenizer's 1 and 0 are taken for it.

    Args:
        mask: [B, T] bool or integers, 0 at padding.
        x: [B, T, ..], what it belongs to.
        name: of who reads, for an error.

    Raises:
        ShapeError: another shape, or floating point, where 0 might as well mean "real" (an additive mask).

    Example:
        >>> import torch
        >>> read_mask(torch.tensor([[1, 1, 0]]), torch.zeros(1, 3, 5), "Stack").tolist()
        [[True, True, False]]
    """
    if mask.shape != x.shape[:2]:
        raise ShapeError(f"{name}: expected a mask of shape {list(x.shape[:2])}, got {list(mask.shape)}")
    if mask.dtype == torch.bool:
        return mask
    if mask.dtype.is_floating_point or mask.dtype.is_complex:
        raise ShapeError(
            f"{name}: expected a mask of bool (True = real) or integers (0 = padding), got {mask.dtype}; "
            "give mask.bool() if 0 is padding in it"
        )
    return mask != 0


def settle(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """An input with its real positions first and nothing in its padding that could spread.

    Args:
        x: [B, T, D].
        mask: [B, T] bool, or None.

    Returns:
        x; the mask, None where every position is real; and for `restore` where each position went, [B, T],
        None where they stayed. An exported graph is not asked: there the real positions must come first.

    Example:
        >>> import torch
        >>> x, mask = torch.tensor([[[9.0], [1.0], [2.0]]]), torch.tensor([[False, True, True]])
        >>> x, mask, places = settle(x, mask)
        >>> x.flatten().tolist(), mask.tolist()
        ([1.0, 2.0, 0.0], [[True, True, False]])
        >>> restore(x, places).flatten().tolist()
        [0.0, 1.0, 2.0]
    """
    if mask is None:
        return x, None, None
    if torch.jit.is_tracing() or torch.compiler.is_exporting():
        return _zeroed(x, mask), mask, None
    known = arrangement(mask) if looked_at(mask) else "scattered"
    if known == "full":
        return x, None, None
    if known == "first":
        return harmless(x, mask), mask, None
    order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
    first = mask.gather(1, order)
    return _zeroed(x.gather(1, order[..., None].expand_as(x)), first), first, order.argsort(1)


def restore(y: Tensor, places: Tensor | None) -> Tensor:
    """Outputs [B, T, H] of what `settle` gave, in the order in which its x came."""
    return y if places is None else y.gather(1, places[..., None].expand_as(y))


def arrangement(mask: Tensor) -> Arrangement:
    """Where the real positions of a mask [B, T] are: everywhere, first in each row, or anywhere.

    On a GPU the answer is kept with the mask: a batch waits for the device once, not at every layer.
    """
    keeps = mask.device.type != "cpu" and not mask.is_inference()
    known: tuple[int, Arrangement] | None = getattr(mask, "_arrangement", None) if keeps else None
    if known is not None and known[0] == mask._version:
        return known[1]
    found: Arrangement = "scattered"
    if bool(mask.all()):
        found = "full"
    elif not bool((mask[:, 1:] > mask[:, :-1]).any()):
        found = "first"
    if keeps:
        mask._arrangement = (mask._version, found)  # type: ignore[attr-defined]
    return found


def harmless(x: Tensor, mask: Tensor | None) -> Tensor:
    """x [B, T, D] with zeros at padding where what stands there could spread: not finite, or very large.

    On the CPU filling costs ten times as much as looking.
    """
    if mask is None:
        return x
    if looked_at(x) and x.device.type == "cpu" and bool(torch.linalg.vector_norm(x.detach()) < HARMLESS):
        return x
    return _zeroed(x, mask)


def looked_at(tensor: Tensor) -> bool:
    """Whether the numbers of a tensor may decide what runs: it is plain, and nothing traces it."""
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.device.type != "meta"
    return plain and not choice.traced()


def _zeroed(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(~mask[..., None], 0.0)
