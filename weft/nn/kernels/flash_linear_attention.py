"""Recurrences of a matrix per head by flash-linear-attention, the library of their field, on a GPU.

    recurrence (matrix.py)          cells                       function of the library
    Decayed, one decay per head     retention, ssd, mlstm       chunk_simple_gla
    Decayed, one per row            gla, hgrn2                  chunk_gla
    Replaced                        delta, gated_delta          chunk_gated_delta_rule
    Corrected                       rwkv7                       chunk_dplr_delta_rule

The package `fla-core` (`pip install 'weft-seq[gpu]'`) computes if `WEFT_CELLS=fla` asks for it, on
CUDA under bfloat16 autocast, or where the model itself is in half precision: in float32 its products have 10
bits (TF32), Weft's own 23. Everything else is computed in chunks by torch (matrix.py), also under
torch.compile. The library has no second derivatives. Read next: matrix.py.
"""

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

DEVICES = ("cuda",)
HALF = (torch.bfloat16, torch.float16)

LEAST = -30.0
"""The logarithm of the smallest decay. The library subtracts running sums of logarithms, in which a step that
forgets everything would drown those after it; what e^-30 leaves of a state is below float32's last digit."""

RWKV7_LEAST = -math.exp(-0.5)
"""The logarithm of RWKV-7's smallest decay (cells/rwkv7.py); with this bound the library multiplies on tensor
cores."""


class LibraryCall(NamedTuple):
    """A function of the library.

    module, function: where it is.
    names: its parameter for each field of a recurrence.
    by_head: the fields that it wants without the last axis, [B, T, H].
    largest_key: the largest K that it computes, 0 for any.
    settings: further arguments.
    """

    module: str
    function: str
    names: Mapping[str, str]
    by_head: tuple[str, ...] = ()
    largest_key: int = 0
    settings: Mapping[str, float] = {}


QKV = {"query": "q", "key": "k", "value": "v"}

DECAYED_BY_HEAD = LibraryCall("fla.ops.simple_gla", "chunk_simple_gla", {**QKV, "decay": "g"}, ("decay",))
DECAYED_BY_ROW = LibraryCall("fla.ops.gla", "chunk_gla", {**QKV, "decay": "g"})
REPLACED = LibraryCall(
    "fla.ops.gated_delta_rule",
    "chunk_gated_delta_rule",
    {**QKV, "decay": "g", "rate": "beta"},
    ("decay", "rate"),
    largest_key=256,
)
CORRECTED = LibraryCall(
    "fla.ops.generalized_delta_rule",
    "chunk_dplr_delta_rule",
    {**QKV, "decay": "gk", "erase": "a", "write": "b"},
    largest_key=256,
    settings={"lower_bound": RWKV7_LEAST},
)


def library_call(asked: Any) -> LibraryCall:
    """The function that computes a recurrence."""
    if "erase" in asked._fields:
        return CORRECTED
    if "rate" in asked._fields:
        return REPLACED
    return DECAYED_BY_HEAD if asked.decay.shape[-1] == 1 else DECAYED_BY_ROW


def why_not(asked: Any, state: Tensor, dtype: torch.dtype) -> str:
    """Why the library cannot compute a recurrence from a state [B, H, K, V]; "" if it can."""
    if reason := why_not_on(state.device):
        return reason
    if dtype not in HALF:
        return f"flash-linear-attention computes in bfloat16 or float16, not in {dtype}"
    call = library_call(asked)
    if call.largest_key and asked.key.shape[-1] > call.largest_key:
        return f"{call.function} takes keys of at most {call.largest_key}, not {asked.key.shape[-1]}"
    return ""


def why_not_on(device: torch.device) -> str:
    """Why the library cannot be used on a device; "" if it can."""
    return missing() if device.type in DEVICES else "flash-linear-attention runs on a GPU"


@functools.cache
def missing() -> str:
    """Why the library cannot be used on this machine; "" if it can."""
    if importlib.util.find_spec("fla") is None:
        return "the package fla-core is not installed: pip install 'weft-seq[gpu]'"
    try:
        for call in (DECAYED_BY_HEAD, DECAYED_BY_ROW, REPLACED, CORRECTED):
            _function(call)
    except (ImportError, AttributeError, RuntimeError) as error:
        return f"the package fla-core cannot be imported ({error}): pip install -U 'weft-seq[gpu]'"
    return ""


def run(asked: Any, state: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """All steps of a recurrence: o [B, T, H, V] in this dtype, and the last state [B, H, K, V] in float32."""
    call = library_call(asked)
    given = {}
    for field, part in zip(asked._fields, asked, strict=True):
        if field == "decay":
            part = part.float().clamp(min=LEAST)
        elif field != "rate":
            part = part.to(dtype)
        # an even number of features, as the backward pass in half precision needs; zeros change nothing
        part = part[..., 0] if field in call.by_head else F.pad(part, (0, part.shape[-1] % 2))
        given[call.names[field]] = part
    keys, values = state.shape[-2:]
    o, last = _function(call)(
        **given,
        **call.settings,
        scale=1.0,
        initial_state=F.pad(state.float(), (0, values % 2, 0, keys % 2)),
        output_final_state=True,
    )
    return o[..., :values], last[..., :keys, :values]


def _function(call: LibraryCall) -> Callable[..., tuple[Tensor, Tensor]]:
    found: Callable[..., tuple[Tensor, Tensor]] = getattr(importlib.import_module(call.module), call.function)
    return found
