"""A recurrent layer, computed by the fastest way that supports it. Read next: ../ways.py, compiled.py.

native      compiled code, float32 on the CPU                              compiled.py
operation   torch's own operation: oneDNN, MKL, cuDNN                      operations/
tiles       compiled code whose products use the processor's tiles (AMX)   compiled.py, ../tiles.py
triton      GPU kernels for cells that torch has no operation for          on_gpu.py
bptt        back-propagation through time, any device and dtype            bptt.py
steps       the plain loop                                                 steps.py
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product, starmap
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.nn.kernels import choice
from weft.nn.kernels.cells import bptt, compiled, steps
from weft.nn.kernels.cells import on_gpu as triton
from weft.nn.kernels.exported import OPERATORS, layer
from weft.nn.kernels.ways import Way, able, pick
from weft.nn.padding import inspectable
from weft.tracing import exporting

PIECE = 2e8  # multiplications of one measurement, a few milliseconds
STEPS = (16, 64)  # of one measurement: enough that work once per call (packing weights) does not decide
FEW = 8  # with fewer rows or steps, work done once per call costs more than the products
ROWS = {False: 4, True: 32}  # rows of one measurement, for few and for many rows

Result = tuple[Tensor, Tensor, Tensor | None]  # y [B, T, H], h, c [B, H]
Operation = Callable[..., Result]


class Given(NamedTuple):
    """The arguments of a layer; see compiled.run."""

    x: Tensor
    h: Tensor
    c: Tensor | None
    weight_x: Tensor
    weight_h: Tensor
    bias: Tensor
    extra: Tensor | None
    mask: Tensor | None

    def tensors(self) -> list[Tensor]:
        """All tensors except the mask."""
        return [tensor for tensor in self[:-1] if tensor is not None]


class Kind(NamedTuple):
    """A class of sizes for which one choice is made."""

    many_rows: bool
    many_steps: bool
    training: bool
    mostly_padding: bool = False


class Sizes(NamedTuple):
    """The shapes of a layer's tensors, apart from rows and steps."""

    inputs: int
    size: int
    cell_state: bool
    weight_x: tuple[int, ...]
    weight_h: tuple[int, ...]
    bias: tuple[int, ...]
    extra: tuple[int, ...] | None
    dtype: torch.dtype


def run(cell: str, given: Given, operation: Operation | None, backend: choice.Cells | None) -> Result:
    """Compute a layer.

    Args:
        cell: a name of steps.run.
        given: inputs, state, weights.
        operation: torch's own operation for this cell, or None.
        backend: forces a way; None uses the switch (choice.py).

    Raises:
        ConfigError: the forced way cannot compute this layer.
    """
    if exporting():
        return layer(cell, *given) if cell in OPERATORS else steps.run(cell, *given)
    asked = choice.check("backend", backend or choice.forced("cells"), "cells")
    if asked == "steps" or not len(given.x):  # without rows there is nothing to measure
        return steps.run(cell, *given)
    listed = _ways if choice.traced() else _kept_ways  # torch.compile does not trace a cache
    ways = listed(cell, operation, asked, on_gpu=given.x.device.type == "cuda")
    if choice.meeting() and given.x.device.type == "cpu" and not choice.traced():
        sizes = _sizes(given)
        choice.meet(f"{cell} {sizes}", partial(_decide, cell, sizes, ways))
    asked = "auto" if asked == "torch" else asked
    return pick(cell, ways, (given,), asked=asked, fastest=partial(_fastest, cell, given)).run(*given)


def skips_padding(x: Tensor) -> bool:
    """Whether the compiled cells, which skip padding themselves, may compute a layer over x [B, T, D]."""
    there = native.loaded().library is not None and choice.forced("cells") in ("auto", "native", "tiles")
    plain = x.dtype == torch.float32 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return there and plain and not choice.traced()


def _ways(cell: str, operation: Operation | None, asked: str, *, on_gpu: bool) -> list[Way[Result]]:
    """The ways that a value of the switch allows, in order of preference; ties go to the first."""
    ways: list[Way[Result]] = []
    compiled_too = asked != "torch"
    if compiled_too:
        ways.append(Way("native", partial(compiled.run, cell), partial(why_not_native, cell)))
    if operation is not None:
        ways.append(Way("operation", operation, plain=True))
    if compiled_too:
        ways.append(Way("tiles", partial(compiled.run, cell, tiled=True), partial(_why_not_tiles, cell)))
    if on_gpu or asked == "triton":
        ways.append(Way("triton", partial(triton.run, cell), lambda given: triton.why_not(cell, given.x)))
    if cell in bptt.CELLS:
        ways.append(Way("bptt", partial(bptt.run, cell)))
    return [*ways, Way("steps", partial(steps.run, cell), plain=True)]


_kept_ways = lru_cache(_ways)


def why_not_native(cell: str, given: Given) -> str:
    """Why the compiled cells cannot compute this layer; "" if they can."""
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
    return ""


def _why_not_tiles(cell: str, given: Given) -> str:
    return native.loaded("tiles").reason if not native.tiles() else why_not_native(cell, given)


def _fastest(cell: str, given: Given, can: Sequence[Way[Result]]) -> Way[Result]:
    ways = {way.name: way for way in can}
    names = _worth_measuring(ways, given)
    if len(names) == 1:
        return ways[names[0]]
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.tensors())
    padding = "operation" in ways and "operation" not in names
    kind = Kind(len(given.x) >= FEW, given.x.shape[1] >= FEW, training, padding)
    name = choice.known(_key(cell, given, names, kind))
    if name not in names:
        name = _choose(cell, _sizes(given), {name: ways[name] for name in names}, kind)
    return ways[name]


def _worth_measuring(can: Collection[str], given: Given) -> list[str]:
    """The names of `can`, without ways that are always slower than another."""
    device = given.x.device.type
    if "native" in can:
        wanted = ["native", "tiles"] if _mostly_padding(given.mask) else ["native", "operation", "tiles"]
        return [name for name in wanted if name in can]
    if not inspectable(given.x):
        return ["operation" if "operation" in can else "steps"]
    if "operation" in can:  # cuDNN is always faster, and so is torch's operation under autocast
        compared = device == "cpu" and not torch.is_autocast_enabled("cpu") and "bptt" in can
        return ["operation", "bptt"] if compared else ["operation"]
    if "triton" in can:  # not measured: a clock on the host times only the launches
        return ["triton"]
    return ["bptt" if "bptt" in can else "steps"]


def _mostly_padding(mask: Tensor | None) -> bool:
    """Whether there is so much padding that ways which skip it need no comparison with others."""
    return mask is not None and float(mask.sum()) < 0.75 * mask.numel()


def _sizes(given: Given) -> Sizes:
    shapes = tuple(tuple(t.shape) for t in (given.weight_x, given.weight_h, given.bias))
    extra = None if given.extra is None else tuple(given.extra.shape)
    dtype = torch.float32 if torch.is_autocast_enabled("cpu") else given.x.dtype
    return Sizes(given.x.shape[2], given.h.shape[1], given.c is not None, *shapes, extra, dtype)


def _decide(cell: str, sizes: Sizes, ways: Sequence[Way[Result]]) -> None:
    """Choose now for every kind of call that this layer may receive outside autocast."""
    padding = (False, True) if native.tiles() else (False,)  # without tiles only one way skips padding
    for kind in starmap(Kind, product((True, False), (True, False), (True, False), padding)):
        mask = torch.zeros(1, 1, dtype=torch.bool) if kind.mostly_padding else None
        given = _sample(sizes, rows=1, steps=1, mask=mask)
        can = {way.name: way for way in able(ways, (given,))}
        names = _worth_measuring(can, given)
        if len(names) > 1:
            _choose(cell, sizes, {name: can[name] for name in names}, kind)


def _choose(cell: str, sizes: Sizes, ways: Mapping[str, Way[Result]], kind: Kind) -> str:
    rows = ROWS[kind.many_rows]
    steps = _steps(sizes, rows, kind.training) if kind.many_steps else 1
    given = _sample(sizes, rows, steps)
    pieces = {name: partial(_piece, way.run, given, kind.training) for name, way in ways.items()}
    return choice.choose(_key(cell, given, ways, kind), pieces)


def _key(cell: str, given: Given, names: Collection[str], kind: Kind) -> str:
    rows, steps = (f"{'>=' if many else '<'}{FEW}" for many in kind[:2])
    return (
        f"{cell} inputs={given.x.shape[2]} size={given.h.shape[1]} rows{rows} steps{steps} "
        f"threads={choice.threads()} {_name(given.x.dtype)} {'training' if kind.training else 'inference'}"
        f"{' mostly padding' if kind.mostly_padding else ''}"
        f"{'' if 'native' in names else ' without compiled code'}"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _steps(sizes: Sizes, rows: int, training: bool) -> int:
    work = math.prod(sizes.weight_x) + math.prod(sizes.weight_h)
    return max(STEPS[0], min(STEPS[1], int(PIECE / (work * rows * (3 if training else 1)))))


def _sample(sizes: Sizes, rows: int, steps: int, mask: Tensor | None = None) -> Given:
    """Arguments of these sizes with small results; draws no random numbers."""

    def full(shape: tuple[int, ...]) -> Tensor:
        return torch.full(shape, 1 / shape[-1], dtype=sizes.dtype)

    weights = (full(shape) for shape in (sizes.weight_x, sizes.weight_h, sizes.bias))
    x, h = full((rows, steps, sizes.inputs)), torch.zeros(rows, sizes.size, dtype=sizes.dtype)
    c = h.clone() if sizes.cell_state else None
    return Given(x, h, c, *weights, None if sizes.extra is None else full(sizes.extra), mask)


def _piece(run: Operation, given: Given, training: bool) -> None:
    """Run a few steps forward and, in training, backward."""
    with torch.inference_mode(False), torch.set_grad_enabled(training):
        tensors = [None if t is None else t.detach().requires_grad_(training) for t in given[:-1]]
        y, *_ = run(*tensors, None)
        if training:
            torch.autograd.grad(
                y, [t for t in tensors if t is not None], torch.ones_like(y), allow_unused=True
            )
