"""Weights packed for the compiled products, once for each module and again when they change.

Read next: attention/decoding.py and output/vocabulary.py, which multiply by them; ../../native/panels.h.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from weft import native
from weft.native import CELLS, pointer
from weft.nn.kernels import choice, tiles
from weft.nn.kernels.ways import why_not_native

Packed = TypeVar("Packed")
_kept: "WeakKeyDictionary[nn.Module, dict[bool, tuple[object, object]]]" = WeakKeyDictionary()
MANY = 16  # from this many rows on, tiles are faster


def why_not_in_search(x: Tensor, dtype: torch.dtype = torch.float32) -> str:
    """Why compiled code cannot compute a search step over x, which takes one dtype and gives no gradients."""
    if x.dtype != dtype:
        return f"compiled code takes {dtype}, not {x.dtype}"
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return "compiled code of a search runs without gradients and without autocast"
    return why_not_native(x, "decoding")


def tiled(rows: int) -> bool:
    """Whether compiled code should multiply this many rows per thread on tiles (tiles.py)."""
    way = choice.forced("fused")
    return native.tiles() and (way == "tiles" or (way == "auto" and rows >= MANY))


def kept(
    of: nn.Module, parameters: Sequence[Tensor], pack: Callable[[], Packed], *, tiled: bool = False
) -> Packed:
    """The cached result of `pack` for a module; computed again if one of the parameters may have changed.

    torch counts the in-place changes of a tensor, with two exceptions: changes by fused optimisers, whose
    steps are counted here, and tensors created in inference mode, which are packed every time. Changes
    through `.data` are not noticed.
    """
    if any(p.is_inference() for p in parameters):
        return pack()
    stamp = (_optimised(), *((p.data_ptr(), p._version) for p in parameters))
    forms = _kept.setdefault(of, {})
    found = forms.get(tiled)
    if found is None or found[0] != stamp:
        found = forms[tiled] = (stamp, pack())
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


def panels(weight: Tensor, *, tiled: bool = False) -> Tensor:
    """Weights [O, K] as panels of up to four registers of outputs, zero-padded; or split for the tiles."""
    library = native.loaded()
    outputs, inputs = weight.shape
    if tiled:
        return tiles.panel(1, outputs, weight.detach().contiguous())
    units = -(-outputs // library.width) * library.width
    packed = weight.new_empty(units * inputs)
    weight = weight.detach().contiguous()
    library.library.weft_pack_forward(CELLS["elman"], outputs, inputs, pointer(weight), pointer(packed))
    return packed
