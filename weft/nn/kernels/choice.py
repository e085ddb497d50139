"""Which implementation ("way") computes an operation: the switches that force one, and the table of rules.

At least one way of an operation consists of torch operations and works for all inputs on any device; where
torch traces or transforms the code, only such a way runs. Where more than one can compute a call, a
fixed rule of shape, dtype and processor decides, never a clock: one recipe, seed and kind of processor give
one model. The figures from which the limits were read are in docs/reference/kernels.md; `python
benchmarks/layer_kernels.py` prints them for another processor. A forced way applies to the whole process,
because batches are trained in threads:

    with use(cells="torch", linear="torch"): ...
    WEFT_CELLS=native WEFT_LINEAR=onednn weft train ...

Read next: linear.py, an operation with three ways; losses.py, compiled or in torch.
"""

import functools
import os
import platform
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from weft import native
from weft.errors import ConfigError
from weft.masks import inspectable
from weft.native.jobs import CELLS, GATES
from weft.nn.kernels.equations import LayerInput
from weft.probe import mapped, traced

Cells = Literal["auto", "native", "narrow", "tiles", "torch", "operation", "fla", "steps"]
"""Recurrent layers. auto: by the rule; native: Weft's compiled code; narrow: compiled code
that multiplies in bfloat16, under autocast; tiles: compiled code on the processor's tile unit (AMX);
torch: no compiled code; operation: torch's own, where it has one; steps: the plain loop; fla, on a GPU:
flash-linear-attention."""

Products = Literal["auto", "torch", "onednn", "tiles"]
"""Linear products."""

Fused = Literal["auto", "native", "tiles", "torch"]
"""Operations that compiled code computes in one pass: losses, additive attention, search steps. auto: by the
rule; torch: no compiled code; native: compiled code without tiles; tiles: a search multiplies
float32 on tiles for any number of rows."""

SWITCHES = {"cells": get_args(Cells), "linear": get_args(Products), "fused": get_args(Fused)}
"""Each switch and its values. Force one with `use`, or with the environment variable WEFT_<SWITCH>."""

OLD_NAMES = {"written": "torch", "bptt": "torch"}
"""Ways of earlier versions, and what they mean now."""

PLAIN = (Tensor, nn.Parameter)

_forced: dict[str, str] = {}


def forced(switch: str) -> str:
    """The way forced by `use`, else by the environment, else "auto"."""
    name = _asked(switch)
    if name == "auto" and switch == "fused":
        name = _asked("cells")
        return name if name in SWITCHES["fused"] else "torch"
    return name


def switched() -> list[str]:
    """The switches that are not "auto", as environment settings: ["WEFT_CELLS=torch"]."""
    names = {switch: _asked(switch) for switch in SWITCHES}
    return [f"{_variable(switch)}={name}" for switch, name in names.items() if name != "auto"]


def check(place: str, name: str, switch: str) -> str:
    """Check the name of a way; an old name is replaced by its current one."""
    name = OLD_NAMES.get(name, name)
    if name not in SWITCHES[switch]:
        raise ConfigError(f"{place}: expected one of {', '.join(SWITCHES[switch])}, got {name!r}")
    return name


@contextmanager
def use(
    *, cells: Cells | None = None, linear: Products | None = None, fused: Fused | None = None
) -> Iterator[None]:
    """Force a way inside the block, for the whole process."""
    before = dict(_forced)
    for switch, name in (("cells", cells), ("linear", linear), ("fused", fused)):
        if name is not None:
            _forced[switch] = check(switch, name, switch)
    try:
        yield
    finally:
        _forced.clear()
        _forced.update(before)


def refused(operation: str, way: str, reason: str) -> ConfigError:
    """The error for a forced way that cannot compute an operation."""
    return ConfigError(f"{operation}: cannot use {way}: {reason}; force torch instead")


def in_torch() -> bool:
    """Whether the switch "fused" leaves its operations to torch."""
    return forced("fused") == "torch"


class Native(NamedTuple):
    """What the compiled code of an operation takes.

    source: its file in weft/native.
    switch: the switch that turns it off.
    dtypes: of its tensors.
    low: further dtypes under autocast; None if it does not follow autocast.
    """

    source: str
    switch: str = "fused"
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)
    low: tuple[torch.dtype, ...] | None = ()


WIDENED = (torch.float32, torch.bfloat16)
HALF = (torch.bfloat16, torch.float16)
NATIVE = {
    "layer": Native("cells", "cells", low=(torch.bfloat16,)),
    "light": Native("light", "cells", low=HALF),
    "selective": Native("selective", "cells", low=HALF),
    "matrix": Native("matrix", "cells"),
    "additive": Native("energies", dtypes=WIDENED),
    "look": Native("energies", low=None),
    "attention": Native("attention"),
    "dropout": Native("dropping"),
    "cross_entropy": Native("losses", dtypes=WIDENED),
    "word2vec": Native("neighbours"),
    "search": Native("decoding", dtypes=WIDENED, low=None),
}
"""The operations that have compiled code."""


def why_not(operation: str, *tensors: Tensor | None) -> str:
    """Why compiled code cannot compute an operation of these tensors; "" if it can."""
    source, _, dtypes, low = NATIVE[operation]
    found = native.loaded(source)
    if found.library is None:
        return found.reason
    if torch.is_autocast_enabled("cpu"):
        if low is None:
            return "compiled code does not follow autocast"
        dtypes = (*dtypes, *low)
    for tensor in tensors:
        if tensor is None:
            continue
        if not tensor.is_cpu or tensor.dtype not in dtypes:
            return f"compiled code computes in float32 on the CPU, not in {tensor.dtype} on {tensor.device}"
        if type(tensor) not in PLAIN or not tensor.numel():
            return "compiled code takes plain tensors that are not empty"
    return ""


def compiles(operation: str, *tensors: Tensor | None, limit: str = "", name: str = "") -> bool:
    """Whether compiled code computes an operation; `limit` is a reason of its own why it cannot.

    `name` is that of the operation in the error of a forced recurrence.
    """
    asked = forced(NATIVE[operation].switch)
    if traced() or asked not in ("auto", "native", "tiles"):
        return False
    reason = limit or why_not(operation, *tensors)
    if reason and asked != "auto" and NATIVE[operation].switch == "cells":
        raise refused(name or operation, "native", reason)
    return not reason


def _asked(switch: str) -> str:
    name = _forced.get(switch)
    if name is None:
        variable = _variable(switch)
        name = _forced[switch] = check(variable, os.environ.get(variable) or "auto", switch)
    return name


def _variable(switch: str) -> str:
    return f"WEFT_{switch.upper()}"


SMALL_PRODUCT = 1 << 20
"""Multiplications below which the overhead of a call exceeds a product: torch's then."""

FUSED_FROM = 384 * 384
"""Query times key positions from which on fused attention is faster than its formula, in a training in
bfloat16 or with dropout; from 200 to 512 tokens it is level."""

ENCODER_POSITIONS = 256
"""Positions up to which an encoder's compiled attention, row by row, is as fast as torch's."""

TILED_ROWS = 16
"""Rows from which on a step of a search multiplies on tiles (AMX)."""

ELMAN = ("elman", "relu")
"""Elman cells that torch has an operation for."""

OPERATIONS = ("lstm", "coupled", "gru", "gru_before", *ELMAN)
"""Cells for which there is something faster than the loop on every device."""


def layer_way(cell: str, given: LayerInput, *, sharing: bool) -> str:
    """How to compute a recurrent layer, one of `Cells`; `sharing`: its steps share weights (linear.py)."""
    asked, x, mask = forced("cells"), given.x, given.mask
    if asked == "steps" or not x.shape[0]:
        return "steps"
    operation = cell in OPERATIONS and (cell != "gru_before" or (x.is_cpu and inspectable(x)))
    if traced():
        return "operation" if operation and not mapped() else "steps"
    compiled = "" if cell in CELLS else "this cell has no compiled code"
    compiled = compiled or why_not("layer", *given[:-1])
    low = torch.is_autocast_enabled("cpu")
    narrow = low and native.narrow_cells() and torch.get_autocast_dtype("cpu") == torch.bfloat16
    if asked not in ("auto", "torch", "fla"):
        reason = {
            "native": compiled,
            "narrow": compiled if narrow else "the compiled cells multiply in bfloat16 only under autocast",
            "tiles": compiled if native.tiles() else native.loaded("tiles").reason,
            "operation": "" if operation else "torch has no operation for this cell",
        }[asked]
        if reason:
            raise refused(cell, asked, reason)
        return asked
    if asked != "auto" or compiled:
        return "operation" if operation else "steps"
    if sharing and not low and not native.tiles():
        return "native"  # which keeps the packed weights
    ways = {"native": True, "operation": operation, "tiles": native.tiles(), "narrow": narrow}
    training = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given)
    # so much padding that a way which does not skip it is slower
    padding = low and mask is not None and float(mask.sum()) < 0.75 * mask.numel()
    shape = LayerShape(cell, x.shape[0], x.shape[1], given.h.shape[1], training, low, padding)
    return recurrent(shape, [way for way, there in ways.items() if there])


def skips_padding(x: Tensor) -> bool:
    """Whether the compiled cells, which skip padding themselves, may compute a layer over x [B, T, D]."""
    there = native.loaded().library is not None and forced("cells") in ("auto", "native", "tiles")
    plain = x.dtype == torch.float32 and x.is_cpu and not torch.is_autocast_enabled("cpu")
    return there and plain and not traced()


class LayerShape(NamedTuple):
    """A call of a recurrent layer.

    cell: its name in the kernels.
    rows, steps, size: B, T, H.
    training: whether there are gradients to compute.
    bfloat16: whether autocast to bfloat16 is on.
    padding: whether more than a quarter of the positions are padding.
    """

    cell: str
    rows: int
    steps: int
    size: int
    training: bool
    bfloat16: bool = False
    padding: bool = False


def recurrent(layer: LayerShape, can: Collection[str]) -> str:
    """The way to compute a recurrent layer on a CPU that has Weft's compiled code."""
    cell, rows, steps, size = layer[:4]
    weights = GATES[cell] * size * size
    if steps == 1:
        way = _one_step(layer, weights)
    elif layer.bfloat16:
        way = _in_bfloat16(layer, weights) if "narrow" in can else "native"
    else:
        few = rows <= 8 and steps < 8 and size > 128 and not layer.training
        by_torch = cell in ELMAN or (cell == "gru" and rows > 4 and steps == 2)
        way = "operation" if few and by_torch else "native"
    if way == "native" and steps > 1 and rows >= 16 and weights >= 3 << 16 and weights * rows * steps >= 5e7:
        way = "tiles"
    return way if way in (*can, "steps") else "steps" if steps == 1 else "native"


def _one_step(layer: LayerShape, weights: int) -> str:
    """Compiled code packs the weights for more than four rows; a plain step has few operations."""
    rows, size, plain = layer.rows, layer.size, layer.cell in ELMAN
    if layer.bfloat16:
        most = (rows == 1 and weights <= 3 << 18) if layer.training else rows <= (32 if size <= 256 else 8)
        compiled = size <= 128 or most
    else:
        compiled = size <= 128 or rows <= 4 or (size <= 256 and rows >= 128)
        compiled = compiled and not (layer.training or plain)
    if compiled:
        return "native"
    large = plain and rows >= 32 and size > 128 and not (layer.training or layer.bfloat16)
    return "operation" if large or layer.cell == "gru" else "steps"


def _in_bfloat16(layer: LayerShape, weights: int) -> str:
    """More than one step on a processor that multiplies bfloat16."""
    cell, rows, steps, size = layer[:4]
    if cell == "lstm" and not layer.padding:  # oneDNN's
        numbers = rows * steps * size
        if layer.training and rows >= min(24, max(10, size / 24)) and numbers >= 15_000:
            return "operation"
        if not layer.training and rows >= min(8, size / 64) and numbers >= 22_000:
            return "operation"
    # with few rows, reading the weights takes longer than computing with them
    few = rows < 24 if layer.training else rows < 16 and steps >= 8
    return "narrow" if few and weights >= 3 << 17 else "native"


def product(rows: int, inputs: int, outputs: int, can: Collection[str]) -> str:
    """The way to compute a float32 product [rows, inputs] x [inputs, outputs] on a CPU."""
    deep = inputs >= 512 and outputs >= 128
    if "tiles" in can and rows >= 512 and (deep or (inputs >= 256 and outputs >= 256)):
        return "tiles"
    # MKL leaves AVX-512 unused on processors of other makers, where oneDNN is up to twice as fast.
    unused = torch.backends.cpu.get_cpu_capability() == "AVX512" and vendor() not in ("GenuineIntel", "")
    return "onednn" if "onednn" in can and unused else "torch"


@functools.cache
def processor() -> dict[str, str]:
    """The processor as the system describes it, such as {"vendor_id": "GenuineIntel"} on Linux."""
    found: dict[str, str] = {"model name": platform.processor() or platform.machine()}
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            title, _, value = (part.strip() for part in line.partition(":"))
            if not title:
                break  # assume that all cores are alike
            found[title] = value
    return found


def vendor() -> str:
    """The maker of the processor, or "" where the system does not say."""
    return processor().get("vendor_id", "")
