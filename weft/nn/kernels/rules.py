"""Which way computes an operation: one table of fixed rules on shape, dtype and processor.

Nothing is timed while a model runs, so one recipe, seed and kind of processor give one model. The figures
from which the limits below were read are in docs/reference/kernels.md; `python benchmarks/layer_kernels.py`
prints them for another processor. Read next: choice.py, the switches that force a way.
"""

import functools
import platform
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

import torch

GATES = {"lstm": 4, "peephole": 4, "coupled": 3, "gru": 3, "gru_before": 3}
"""Products with the state per unit, by cell; one in every other cell."""


SMALL_PRODUCT = 1 << 20
"""Multiplications below which the overhead of a call exceeds a product: torch's then."""

FUSED_FROM = 384 * 384
"""Query times key positions from which on fused attention is faster; from 200 to 512 tokens it is level."""

ENCODER_POSITIONS = 256
"""Positions up to which an encoder's compiled attention, row by row, is as fast as torch's."""

TILED_ROWS = 16
"""Rows from which on a step of a search multiplies on tiles (AMX)."""

ELMAN = ("elman", "relu")
"""Elman cells that torch has an operation for."""


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
    weights = GATES.get(cell, 1) * size * size
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


def formula_is_faster(queries: int, places: int, *, costly: bool) -> bool:
    """Whether attention by its formula is faster than torch's fused operation in a training on a CPU."""
    return costly and queries * places < FUSED_FROM


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
