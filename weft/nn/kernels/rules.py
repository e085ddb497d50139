"""Which way computes an operation: one table of fixed rules on shape, dtype and processor.

Nothing is timed while a model runs, so one recipe, seed and kind of processor give one model. The figures
from which the limits below were read are in docs/reference/kernels.md; `python benchmarks/kernels.py` prints
them for another processor. Read next: choice.py, the switches that force a way.
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
    """The way to compute a recurrent layer on a CPU that has Weft's compiled code.

    Args:
        layer: the call.
        can: the ways that can compute it, "native" among them; see cells/layer.py.
    """
    cell, rows, steps, size = layer[:4]
    weights = GATES.get(cell, 1) * size * size
    large = size > 128 and not (layer.training or layer.bfloat16)
    if steps == 1:
        if _one_step_compiled(layer, weights):
            return "native"
        by_torch = cell == "gru" or (cell in ELMAN and large and rows >= 32)
        return "operation" if by_torch and "operation" in can else "steps"
    few = cell in ELMAN and rows <= 8 and steps < 8
    if large and "operation" in can and (few or (cell == "gru" and 4 < rows <= 8 and steps == 2)):
        return "operation"
    in_hardware = layer.bfloat16 and "narrow" in can
    if in_hardware and cell == "lstm" and "operation" in can and not layer.padding:  # oneDNN's
        numbers = rows * steps * size
        if layer.training and rows >= min(24, max(10, size / 24)) and numbers >= 15_000:
            return "operation"
        if not layer.training and 64 * rows >= size and numbers >= 22_000:
            return "operation"
    if in_hardware and layer.training and rows < 24 and weights >= 3 << 18:
        return "narrow"
    if "tiles" in can and rows >= 16 and weights >= 3 << 16 and weights * rows * steps >= 5e7:
        return "tiles"
    return "native"


def _one_step_compiled(layer: LayerShape, weights: int) -> bool:
    """Whether to take one step in compiled code, which packs the weights for more than four rows."""
    rows, size = layer.rows, layer.size
    if not layer.bfloat16 and (layer.training or layer.cell in ELMAN):  # a plain step has few operations
        return False
    if layer.training:
        return size <= 128 or (rows == 1 and weights <= 3 << 18)
    if layer.bfloat16:
        return size <= 128 or rows <= (32 if size <= 256 else 8)
    return size <= 128 or rows <= 4 or (size <= 256 and rows >= 128)


def product(rows: int, inputs: int, outputs: int, can: Collection[str]) -> str:
    """The way to compute a float32 product [rows, inputs] x [inputs, outputs] on a CPU.

    Args:
        can: "torch", and "tiles" and "onednn" where they are available.
    """
    deep = inputs >= 512 and outputs >= 128
    if "tiles" in can and rows >= 512 and (deep or (inputs >= 256 and outputs >= 256)):
        return "tiles"
    # MKL leaves AVX-512 unused on processors of other makers, where oneDNN is up to twice as fast.
    unused = torch.backends.cpu.get_cpu_capability() == "AVX512" and vendor() not in ("GenuineIntel", "")
    return "onednn" if "onednn" in can and unused else "torch"


def formula_is_faster(queries: int, places: int, *, costly: bool) -> bool:
    """Whether attention by its formula is faster than torch's fused operation in a training on a CPU.

    Args:
        queries, places: positions.
        costly: in bfloat16 or with dropout, where the fused backward pass is slow.
    """
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
