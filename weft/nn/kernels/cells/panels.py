"""Weights as the compiled cells read them, and the buffers that go with each kind. Read next: compiled.py.

float32   panels of a few registers of units, all inputs in turn
narrow    the same in bfloat16, two inputs in a word
tiles     split into three parts for the processor's tiles (AMX)
plain     not packed, for few rows and steps
"""

import torch
from torch import Tensor

from weft import native
from weft.native import CELLS, GATES, pointer
from weft.nn.kernels import tiles
from weft.nn.kernels.cells.rows import Sorted

PLAIN_TILE = 4  # rows, FEW in cells.cpp


def forward(cell: str, kind: str, weight: Tensor, size: int) -> Tensor:
    """W_x or W_h [G H, K] for the forward pass."""
    match kind:
        case "plain":
            return weight
        case "tiles":
            return tiles.panel(GATES[cell], size, weight)
    library, inputs = native.loaded().library, weight.shape[1]
    panel = weight.new_empty(_units(size) * GATES[cell] * inputs)
    library.weft_pack_forward(CELLS[cell], size, inputs, pointer(weight), pointer(panel))
    return _words(panel, GATES[cell], size, inputs) if kind == "narrow" else panel


def backward(kind: str, weight: Tensor, size: int) -> Tensor:
    """W_h [G H, H] for the backward pass."""
    match kind:
        case "plain":
            return weight
        case "tiles":
            return tiles.panel(1, size, weight, back=True)
    panel = weight.new_empty(_units(size) * len(weight))
    native.loaded().library.weft_pack_backward(size, len(weight), pointer(weight), pointer(panel))
    return _words(panel, 1, size, len(weight)) if kind == "narrow" else panel


def room_forward(kind: str, plan: Sorted, wide: int, size: int) -> Tensor | None:
    """A buffer for each slab [slabs, ..] of 16-bit elements, or None."""
    match kind:
        case "plain":
            return torch.empty(len(plan.active), 2 * PLAIN_TILE * wide * 2, dtype=torch.int16)
        case "tiles":
            return tiles.room(_most(plan), size, len(plan.active))
        case "narrow":
            return _room(plan, size)
    return None


def room_backward(kind: str, plan: Sorted, wide: int) -> Tensor | None:
    """Memory that the backward pass of this kind needs, if any."""
    match kind:
        case "tiles":
            return tiles.room(_most(plan), wide, len(plan.active))
        case "narrow":
            return _room(plan, wide)
    return None


def _room(plan: Sorted, deep: int) -> Tensor:
    """For the rows of a slab in words of two numbers."""
    words = native.loaded().library.weft_row_words(deep)
    return torch.empty(len(plan.active), 2 * _most(plan) * words, dtype=torch.int16)


def _words(panel: Tensor, gates: int, size: int, inputs: int) -> Tensor:
    words = torch.empty(len(panel) // inputs * -(-inputs // 2), dtype=torch.int32)
    native.loaded().library.weft_pack_words(gates, size, inputs, pointer(panel), pointer(words))
    return words


def _units(size: int) -> int:
    """Units in whole registers."""
    width = native.loaded().width
    return -(-size // width) * width


def _most(plan: Sorted) -> int:
    """Number of rows of the largest slab."""
    return int(plan.bounds.diff().max())
