"""Convert masked inputs to the form that kernels need: real positions first, padding finite.

Cells and stacks accept padding anywhere (left, right, in between) with any content. Kernels skip padding or
keep the state there, so they need the real positions first and finite padding. `settle` rearranges the
input, and `restore` restores the order of the outputs.
Read next: cells/cell.py, which calls both around every kernel.
"""

import torch
from torch import Tensor, nn

from weft.errors import ShapeError
from weft.masks import Arrangement, facts, known_facts, or_all
from weft.nn.border import check_mask
from weft.probe import exporting, traced

HARMLESS = 1e18  # below this norm of x no product of padding with a weight overflows


def read_mask(mask: Tensor | None, x: Tensor, name: str, *, some: bool = False) -> Tensor:
    """A mask as bool; None for all real, integers with 0 for padding. `some` refuses False everywhere."""
    if mask is None:
        return or_all(mask, x)
    check_mask(name, mask, x)
    mask = mask if mask.dtype == torch.bool else mask != 0
    if some and mask.is_cpu and inspectable(mask) and not mask.any():
        raise ShapeError(
            f"{name}: expected a mask with at least one real position, got False everywhere; "
            "True is real in Weft's masks, so turn one of torch's around with ~mask"
        )
    return mask


def settle(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """x with its real positions first and harmless padding, the mask, and where each was, for `restore`."""
    if mask is None:
        return x, None, None
    if torch.jit.is_tracing() or exporting():
        return _zeroed(x, mask), mask, None
    known = arrangement(mask) or "scattered"
    if known == "full":
        return x, None, None
    if known == "first":
        return harmless(x, mask), mask, None
    order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
    first = mask.gather(1, order)
    return _zeroed(x.gather(1, order[..., None].expand_as(x)), first), first, order.argsort(1)


def restore(y: Tensor, places: Tensor | None) -> Tensor:
    """Outputs [B, T, H] in the original order, before `settle`."""
    return y if places is None else y.gather(1, places[..., None].expand_as(y))


def harmless(x: Tensor, mask: Tensor | None) -> Tensor:
    """x [B, T, D] with padding set to zero if it may be non-finite or very large.

    On the CPU filling costs ten times as much as checking.
    """
    if mask is None:
        return x
    if inspectable(x) and x.device.type == "cpu" and bool(torch.linalg.vector_norm(x.detach()) < HARMLESS):
        return x
    return _zeroed(x, mask)


def arrangement(mask: Tensor) -> Arrangement | None:
    """Where the real positions of a mask [B, T] are; None if that is not known and it may not be read."""
    if (known := facts(mask) if inspectable(mask) else known_facts(mask)) is None:
        return None
    return known.arrangement


def inspectable(tensor: Tensor) -> bool:
    """Whether code may branch on a tensor's values: it is a plain tensor and is not being traced."""
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.device.type != "meta"
    return plain and not traced()


def _zeroed(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(~mask[..., None], 0.0)
