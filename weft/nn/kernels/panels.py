"""Weights packed for the compiled products, once for each module and again when they change.

Read next: decoding.py and vocabulary.py, which multiply by them; ../../native/panels.h.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from weft import native
from weft.native import CELLS, pointer
from weft.nn.kernels import choice

Packed = TypeVar("Packed")
_kept: "WeakKeyDictionary[nn.Module, tuple[object, object]]" = WeakKeyDictionary()


def usable(x: Tensor) -> bool:
    """Whether compiled products of a search may serve: plain float32 on the CPU, without gradients."""
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and type(x) is Tensor
        and choice.forced("cells") in ("auto", "native")
        and not (torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or choice.traced())
        and native.decoding().library is not None
    )


def kept(of: nn.Module, parameters: Sequence[Tensor], pack: Callable[[], Packed]) -> Packed:
    """What `pack` makes of a module's parameters; made anew when one of them has changed since.

    torch counts a tensor's changes, but for tensors made in inference mode: those are packed every time.
    """
    if any(p.is_inference() for p in parameters):
        return pack()
    stamp = tuple((p.data_ptr(), p._version) for p in parameters)
    found = _kept.get(of)
    if found is None or found[0] != stamp:
        found = _kept[of] = (stamp, pack())
    return found[1]  # type: ignore[return-value]


def panels(weight: Tensor) -> Tensor:
    """[O, K] as panels of up to four registers of outputs, filled up with zeros."""
    library = native.loaded()
    outputs, inputs = weight.shape
    units = -(-outputs // library.width) * library.width
    packed = weight.new_empty(units * inputs)
    weight = weight.detach().contiguous()
    library.library.weft_pack_forward(CELLS["elman"], outputs, inputs, pointer(weight), pointer(packed))
    return packed
