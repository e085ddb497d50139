"""Weights packed for the compiled products, once for each module and again when they change.

float32 weights are multiplied in float32, bfloat16 weights in bfloat16, and those of modules given to
`use_int8` as bytes. Read next: attention/decoding.py and output/vocabulary.py, which multiply by them;
../../native/panels.h, ../../native/narrow.h.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from weft import native
from weft.native import CELLS, KINDS, pointer
from weft.nn.kernels import choice, tiles
from weft.nn.kernels.choice import why_not_native

Packed = TypeVar("Packed")
_kept: "WeakKeyDictionary[nn.Module, dict[Packing, tuple[object, object]]]" = WeakKeyDictionary()
_int8: "WeakSet[nn.Module]" = WeakSet()
MANY = 16  # from this many rows on, tiles are faster


class Packing(NamedTuple):
    """How weights are packed: a kind of KINDS, and whether for the tiles."""

    kind: str
    tiled: bool

    def room(self, rows: int, inputs: int, slabs: int) -> Tensor | None:
        """A buffer in which each slab splits or rounds its rows [rows, inputs]; None if none is needed."""
        if self.tiled:
            return tiles.room(rows, inputs, slabs)
        if self.kind == "float32":
            return None
        library = native.loaded("decoding").library
        return torch.empty(slabs, library.weft_narrow_rows(KINDS[self.kind], rows, inputs), dtype=torch.int16)

    def panels(self, weight: Tensor) -> Tensor:
        """Weights [O, K] as panels of up to four registers of outputs, zero-padded; for tiles, split."""
        outputs, inputs = weight.shape
        weight = weight.detach().float().contiguous()
        if self.tiled:
            return tiles.panel(1, outputs, weight)
        if self.kind == "float32":
            library = native.loaded()
            packed = weight.new_empty(-(-outputs // library.width) * library.width * inputs)
            pack = library.library.weft_pack_forward
            pack(CELLS["elman"], outputs, inputs, pointer(weight), pointer(packed))
            return packed
        library, kind = native.loaded("decoding").library, KINDS[self.kind]
        packed = torch.empty(library.weft_narrow_panel(kind, outputs, inputs), dtype=torch.int16)
        library.weft_narrow_pack(kind, outputs, inputs, pointer(weight), pointer(packed))
        return packed


def multiplied(
    function: str, how: Packing, x: Tensor, panels: Tensor, bias: Tensor | None, outputs: int
) -> Tensor:
    """A compiled product of x [.., D] by packed weights, in float32: [.., outputs].

    Args:
        function: "weft_multiply", or "weft_predict" for its logarithmic softmax.
        how, panels: the weights, from `packing` for as many rows per thread, and as they were packed.
        bias: [outputs], in float32.
    """
    x = x.float().contiguous()
    rows, size = x.numel() // x.shape[-1], x.shape[-1]
    y, slabs = torch.empty(*x.shape[:-1], outputs), native.slabs(rows)
    cut = how.room(-(-rows // slabs), size, slabs)
    job = native.Predict(
        rows, size, outputs, slabs, pointer(panels), pointer(bias), pointer(x), pointer(y),
        *tiles.given(cut), KINDS[how.kind],
    )  # fmt: skip
    native.call(function, job)
    return y


def packing(of: nn.Module, weight: Tensor, rows: int) -> Packing:
    """How to pack the weights of a module that multiplies this many rows per thread."""
    rounded = weight.dtype == torch.bfloat16
    if of in _int8 and native.int8() and rounded == native.narrow():
        return Packing("int8", tiled=False)
    return Packing("bfloat16", tiled=False) if rounded else Packing("float32", tiled(rows))


def use_int8(of: nn.Module) -> None:
    """From now on, compiled code multiplies a module's weights as bytes where it can.

    They are in bfloat16 where compiled code multiplies that too (`native.narrow`), elsewhere in float32.
    """
    _int8.add(of)


def multiply_as(one: nn.Module, other: nn.Module) -> None:
    """Let `use_int8` hold for the second module too if it was called for the first."""
    if one in _int8:
        _int8.add(other)


def why_not_in_search(x: Tensor) -> str:
    """Why compiled code cannot compute a search step over x of any shape, which gives no gradients."""
    dtypes = [torch.float32, torch.bfloat16] if native.narrow() else [torch.float32]
    if x.dtype not in dtypes:
        return f"compiled code takes {' or '.join(map(str, dtypes))}, not {x.dtype}"
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return "compiled code of a search runs without gradients and without autocast"
    return why_not_native(x, "decoding") or why_not_native(x, "cells")  # which packs the weights


def tiled(rows: int) -> bool:
    """Whether compiled code should multiply this many rows per thread on tiles (tiles.py)."""
    way = choice.forced("fused")
    return native.tiles() and (way == "tiles" or (way == "auto" and rows >= MANY))


def kept(
    of: nn.Module, parameters: Sequence[Tensor], pack: Callable[[Packing], Packed], packing: Packing
) -> Packed:
    """What `pack(packing)` returned for a module; called again if a parameter may have changed.

    torch counts the in-place changes of a tensor, with two exceptions: changes by fused optimisers, whose
    steps are counted here, and tensors created in inference mode, which are packed every time. Changes
    through `.data` are not noticed.
    """
    try:
        stamp = (_optimised(), *[(p.data_ptr(), p._version) for p in parameters])
    except RuntimeError:  # a tensor of inference mode has no version
        return pack(packing)
    packings = _kept.setdefault(of, {})
    found = packings.get(packing)
    if found is None or found[0] != stamp:
        found = packings[packing] = (stamp, pack(packing))
    return found[1]  # type: ignore[return-value]


_steps: list[int] = []


def _optimised() -> int:
    """Optimiser steps taken in this process since the first call of this function."""
    if not _steps:
        _steps.append(0)
        register_optimizer_step_post_hook(_step)
    return _steps[0]


def _step(*_: object) -> None:
    _steps[0] += 1
