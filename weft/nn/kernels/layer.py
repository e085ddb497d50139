"""A recurrent layer by the fastest of the ways that can compute it here. Read next: choice.py, compiled.py.

native     compiled code, float32 on the CPU              compiled.py
tiles      the same, products by AMX                      compiled.py, tiles.py
operation  torch's own: oneDNN, MKL, cuDNN                lstm.py, gru.py, elman.py, coupled.py
written    back-propagation by hand, any device and dtype written.py
triton     kernels for a GPU, without an operation        fused.py
steps      the plain loop                                 steps.py
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.errors import ConfigError
from weft.nn.kernels import choice, compiled, fused, steps, written
from weft.nn.padding import looked_at

PROBE = 2e8  # multiplications of a probe's piece, some milliseconds
STEPS = (16, 64)  # what is done once a call, packing weights for one, must not weigh more than in a long one

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
    ways = _ways(cell, given, operation, compiled_too=asked != "torch")
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
            raise ConfigError(f"{cell}: {asked} came, but {_why_not(cell, asked, given)}")
        return ways[asked](*given)
    if len(ways) == 1:
        return next(iter(ways.values()))(*given)
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.tensors())
    key = _key(cell, given, training) + ("" if "native" in ways else " without compiled code")
    name = choice.known(key)
    if name not in ways:
        name = choice.choose(key, {name: partial(_piece, way, given, training) for name, way in ways.items()})
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
    return f"there is no such way for {given.x.dtype} on {given.x.device.type}; force torch instead"


def _mostly_padding(mask: Tensor | None) -> bool:
    """Whether skipping the padding saves so much that nothing need be measured."""
    return mask is not None and float(mask.sum()) < 0.75 * mask.numel()


def _key(cell: str, given: Given, training: bool) -> str:
    rows, steps, inputs = given.x.shape
    rows = min(64, 1 << (rows - 1).bit_length())
    return (
        f"{cell} inputs={inputs} size={given.h.shape[1]} rows<={rows}{'+' if rows == 64 else ''} "
        f"steps{'<' if steps < 8 else '>='}8 threads={choice.threads()} {_kind(given.x.dtype)} "
        f"{'training' if training else 'inference'}"
    )


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _piece(way: Way, given: Given, training: bool) -> None:
    """A few steps, forward and, in training, backward; draws no random number."""
    work = given.weight_x.numel() + given.weight_h.numel()
    steps = int(PROBE / (work * len(given.x) * (3 if training else 1)))
    steps = min(given.x.shape[1], max(STEPS[0], min(STEPS[1], steps)))
    with torch.inference_mode(False), torch.set_grad_enabled(training):
        tensors = [t if t is None else t.detach().clone().requires_grad_(training) for t in given[:-1]]
        tensors[0] = torch.full_like(given.x[:, :steps], 0.1, requires_grad=training)
        y, *_ = way(*tensors, None)
        if training:
            torch.autograd.grad(
                y, [t for t in tensors if t is not None], torch.ones_like(y), allow_unused=True
            )
