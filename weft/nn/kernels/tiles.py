"""The linear product on the processor's tile unit (AMX), float32 on the CPU. Read next: ../../native/tiles.h.

Each number is split into three bfloat16 numbers that add up to it, so the product is as exact as in float32.
"""

import torch
from torch import Tensor

from weft import native
from weft.native import jobs, pointer

ROWS = 16  # rows of a tile, the smallest slab


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b for x [.., I], weight [O, I], bias [O] in float32; gives [.., O]."""
    flat, weight = _dense(x.reshape(-1, x.shape[-1])), _dense(weight)
    (rows, inputs), outputs = flat.shape, len(weight)
    y = x.new_empty(*x.shape[:-1], outputs)
    slabs = native.slabs(-(-rows // ROWS))
    packed = room(outputs, inputs)
    cut = torch.empty(slabs * native.loaded("tiles").library.weft_tiles_group(), dtype=torch.int16)
    bias = None if bias is None else bias.contiguous()
    job = jobs.Product(
        rows, inputs, outputs, slabs, *flat.stride(), *weight.stride(), outputs,
        pointer(flat), pointer(weight), pointer(bias), pointer(packed), pointer(cut), pointer(y),
    )  # fmt: skip
    native.call("weft_tiles_pack", job)
    native.call("weft_tiles_product", job)
    return y


def panel(gates: int, size: int, weight: Tensor, *, back: bool = False) -> Tensor:
    """Weights [G O, K] of G gates, split and packed for compiled code; `back` packs one matrix as W^T."""
    inputs = len(weight) if back else weight.shape[1]
    packed = room(size, inputs, gates)
    native.loaded().library.weft_pack_tiled(gates, size, inputs, back, pointer(weight), pointer(packed))
    return packed


def room(rows: int, inputs: int, count: int = 1) -> Tensor:
    """A buffer [count, ..] in which compiled code stores split numbers, `count` times [rows, inputs]."""
    return torch.empty(count, native.loaded("tiles").library.weft_tiles_room(rows, inputs), dtype=torch.int16)


def given(room: Tensor | None) -> tuple[int, int | None]:
    """A buffer as arguments of compiled code: its size per slab and its address; NULL means no tiles."""
    return (0, None) if room is None else (room.shape[1], pointer(room))


def _dense(x: Tensor) -> Tensor:
    """x itself if one of its two axes is contiguous, else a contiguous copy."""
    return x if 1 in x.stride() else x.contiguous()
