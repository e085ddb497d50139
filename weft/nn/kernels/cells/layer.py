"""A recurrent layer by the fastest of the ways that can compute it here. Read next: choice.py, compiled.py.

native     compiled code, float32 on the CPU              compiled.py tiles      the same, products by AMX
compiled.py, tiles.py operation  torch's own: oneDNN, MKL, cuDNN                operations/lstm.py,
operations/gru.py, operations/elman.py, operations/coupled.py written    back-propagation by hand, any device
and dtype backward.py triton     kernels for a GPU, without an operation        fused.py steps      the plain
loop                                 steps.py
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product, starmap
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.cells import backward as written
from weft.nn.kernels.cells import compiled, fused, steps
from weft.nn.padding import looked_at

PROBE = 2e8  # multiplications of a probe's piece, some milliseconds
STEPS = (16, 64)  # what is done once a call, packing weights for one, must not weigh more than in a long one
FEW = 8  # rows, or steps: with fewer, what is done once a call weighs more than the products
ROWS = {False: 4, True: 32}  # of a probe with few, with many

Result = tuple[Tensor, Tensor, Tensor | None]  # y [B, T, H], h, c [B, H]
Way = Callable[..., Result]


class Given(NamedTuple):
    """What a layer computes with; see compiled.run."""

    x: Tensor
    h: Tensor
    c: Tensor | None
    weight_x: Tensor
    weight_h: Tensor
    bias: Tensor
    extra: Tensor | None
    mask: Tensor | None

    def tensors(self) -> list[Tensor]:
        """All but the mask."""
        return [tensor for tensor in self[:-1] if tensor is not None]


class Kind(NamedTuple):
    """A class of sizes for which one choice is made."""

    many_rows: bool
    many_steps: bool
    training: bool
    mostly_padding: bool = False


class Sizes(NamedTuple):
    """The shapes of a layer's tensors, without rows and steps."""

    inputs: int
    size: int
    cell_state: bool
    weight_x: tuple[int, ...]
    weight_h: tuple[int, ...]
    bias: tuple[int, ...]
    extra: tuple[int, ...] | None
    dtype: torch.dtype


def run(cell: str, given: Given, operation: Way | None, backend: choice.Cells | None) -> Result:
    """A layer.

    Args:
        cell: a name of compiled.run or written.run.
        given: inputs, state, weights.
        operation: torch's own, if it has one for this cell.
        backend: forces a way; None as `choice.use` says.

    Raises:
        ConfigError: the way that is forced cannot compute this.
    """
    asked = choice.check("backend", backend or choice.forced("cells"), "cells")
    compiled_too = asked != "torch"
    ways = _ways(cell, given, operation, compiled_too=compiled_too)
    asked = "auto" if asked == "torch" else asked
    if asked == "steps" or not len(given.x):  # without rows there is nothing to measure
        return steps.run(cell, *given)
    if asked == "triton":
        return fused.run(cell, *given)
    if asked == "written" and cell in written.CELLS and not choice.traced():
        return written.run(cell, *given)
    if asked == "operation" and operation is not None:
        return operation(*given)
    if asked != "auto":
        if asked not in ways:
            raise ConfigError(f"{cell}: cannot use {asked}: {_why_not(cell, asked, given)}")
        return ways[asked](*given)
    if choice.meeting() and given.x.device.type == "cpu" and not choice.traced():
        sizes = _sizes(given)
        choice.meet(f"{cell} {sizes}", partial(_decide, cell, sizes, operation, compiled_too=compiled_too))
    if len(ways) == 1:
        return next(iter(ways.values()))(*given)
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.tensors())
    padding = operation is not None and "operation" not in ways
    kind = Kind(len(given.x) >= FEW, given.x.shape[1] >= FEW, training, padding)
    name = choice.known(_key(cell, given, ways, kind))
    if name not in ways:
        name = _choose(cell, _sizes(given), ways, kind)
    return ways[name](*given)


def skips_padding(x: Tensor) -> bool:
    """Whether the compiled cells would serve over x [B, T, D], which skip padding without being told how."""
    there = native.loaded().library is not None and choice.forced("cells") in choice.COMPILED
    plain = x.dtype == torch.float32 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return there and plain and not choice.traced()


def suits_native(cell: str, given: Given) -> str:
    """Why the compiled cells cannot compute this; "" if they can."""
    if cell not in native.CELLS:
        return "there is no compiled code for this cell"
    if native.loaded().library is None:
        return native.loaded().reason
    if given.x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return "the compiled cells run on the CPU without autocast"
    if any(tensor.dtype != torch.float32 for tensor in given.tensors()):
        return f"the compiled cells compute in float32, not in {given.x.dtype}"
    if any(type(tensor) not in (Tensor, nn.Parameter) for tensor in given.tensors()) or not given.x.numel():
        return "the compiled cells take plain tensors that are not empty"
    return "they cannot be traced" if choice.traced() else ""


def _ways(cell: str, given: Given, operation: Way | None, *, compiled_too: bool) -> dict[str, Way]:
    """Those that can compute this; where two are level, the first is taken."""
    ways: dict[str, Way] = {} if operation is None else {"operation": operation}
    if not looked_at(given.x) or (operation and given.x.device.type != "cpu"):  # cuDNN's is not to be beaten
        return ways or {"steps": partial(steps.run, cell)}
    if compiled_too and not suits_native(cell, given):
        others = {} if _mostly_padding(given.mask) else ways
        ways = {"native": partial(compiled.run, cell), **others}
        if native.tiles():
            ways["tiles"] = partial(compiled.run, cell, tiled=True)
    elif not operation and given.x.device.type == "cuda" and not fused.why_not(cell, given.x):
        ways["triton"] = partial(fused.run, cell)  # not measured: a clock here sees launches only
    elif not (operation and torch.is_autocast_enabled(given.x.device.type)) and cell in written.CELLS:
        ways["written"] = partial(written.run, cell)
    return ways


def _why_not(cell: str, asked: str, given: Given) -> str:
    if asked in ("native", "tiles"):
        reason = suits_native(cell, given) or native.loaded("tiles").reason
        return f"{reason}; force torch instead"
    return f"no such way for {given.x.dtype} on {given.x.device.type}; force torch instead"


def _mostly_padding(mask: Tensor | None) -> bool:
    """Whether skipping the padding saves so much that nothing need be measured."""
    return mask is not None and float(mask.sum()) < 0.75 * mask.numel()


def _sizes(given: Given) -> Sizes:
    shapes = tuple(tuple(t.shape) for t in (given.weight_x, given.weight_h, given.bias))
    extra = None if given.extra is None else tuple(given.extra.shape)
    dtype = torch.float32 if torch.is_autocast_enabled("cpu") else given.x.dtype
    return Sizes(given.x.shape[2], given.h.shape[1], given.c is not None, *shapes, extra, dtype)


def _decide(cell: str, sizes: Sizes, operation: Way | None, *, compiled_too: bool) -> None:
    """Choose for every kind of call that this layer may get outside autocast, now."""
    padding = (False, True) if native.tiles() else (False,)  # without tiles one way is left for padding
    for kind in starmap(Kind, product((True, False), (True, False), (True, False), padding)):
        mask = torch.zeros(1, 1, dtype=torch.bool) if kind.mostly_padding else None
        given = _sample(sizes, rows=1, steps=1, mask=mask)
        ways = _ways(cell, given, operation, compiled_too=compiled_too)
        if len(ways) > 1:
            _choose(cell, sizes, ways, kind)


def _choose(cell: str, sizes: Sizes, ways: dict[str, Way], kind: Kind) -> str:
    rows = ROWS[kind.many_rows]
    steps = _steps(sizes, rows, kind.training) if kind.many_steps else 1
    given = _sample(sizes, rows, steps)
    pieces = {name: partial(_piece, way, given, kind.training) for name, way in ways.items()}
    return choice.choose(_key(cell, given, ways, kind), pieces)


def _key(cell: str, given: Given, ways: dict[str, Way], kind: Kind) -> str:
    rows, steps = (f"{'>=' if many else '<'}{FEW}" for many in kind[:2])
    return (
        f"{cell} inputs={given.x.shape[2]} size={given.h.shape[1]} rows{rows} steps{steps} "
        f"threads={choice.threads()} {_name(given.x.dtype)} {'training' if kind.training else 'inference'}"
        f"{' mostly padding' if kind.mostly_padding else ''}"
        f"{'' if 'native' in ways else ' without compiled code'}"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _steps(sizes: Sizes, rows: int, training: bool) -> int:
    work = math.prod(sizes.weight_x) + math.prod(sizes.weight_h)
    return max(STEPS[0], min(STEPS[1], int(PROBE / (work * rows * (3 if training else 1)))))


def _sample(sizes: Sizes, rows: int, steps: int, mask: Tensor | None = None) -> Given:
    """Tensors of these sizes that make no number grow; draws no random number."""

    def full(shape: tuple[int, ...]) -> Tensor:
        return torch.full(shape, 1 / shape[-1], dtype=sizes.dtype)

    weights = (full(shape) for shape in (sizes.weight_x, sizes.weight_h, sizes.bias))
    x, h = full((rows, steps, sizes.inputs)), torch.zeros(rows, sizes.size, dtype=sizes.dtype)
    c = h.clone() if sizes.cell_state else None
    return Given(x, h, c, *weights, None if sizes.extra is None else full(sizes.extra), mask)


def _piece(way: Way, given: Given, training: bool) -> None:
    """A few steps, forward and, in training, backward."""
    with torch.inference_mode(False), torch.set_grad_enabled(training):
        tensors = [None if t is None else t.detach().requires_grad_(training) for t in given[:-1]]
        y, *_ = way(*tensors, None)
        if training:
            torch.autograd.grad(
                y, [t for t in tensors if t is not None], torch.ones_like(y), allow_unused=True
            )
