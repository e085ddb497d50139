"""A recurrent layer, computed by the fastest way that supports it. Read next: ../ways.py, compiled.py.

native      compiled code, in float32 on the CPU                           compiled.py
narrow      compiled code that multiplies in bfloat16, under autocast      compiled.py
operation   torch's own operation: oneDNN, MKL, cuDNN                      operations/
tiles       compiled code whose products use the processor's tiles (AMX)   compiled.py, ../tiles.py
triton      GPU kernels for cells that torch has no operation for          on_gpu.py
bptt        back-propagation through time, any device and dtype            bptt.py
steps       the plain loop                                                 steps.py
"""

from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from weft import native
from weft.nn.kernels import choice
from weft.nn.kernels.cells import bptt, compiled, steps
from weft.nn.kernels.cells import on_gpu as triton
from weft.nn.kernels.cells.form import Given, Operation, Result
from weft.nn.kernels.cells.measuring import Kind, Sizes, choose, key, kind_of, kinds, sample, sizes_of
from weft.nn.kernels.exported import OPERATORS, layer
from weft.nn.kernels.repeated import opened
from weft.nn.kernels.ways import Way, able, pick
from weft.nn.padding import inspectable
from weft.shapes import exporting

__all__ = ["Given", "run", "skips_padding"]

PLAIN = (Tensor, nn.Parameter)
FLOAT = (torch.float32,)
LOW = (torch.float32, torch.bfloat16)  # what the compiled cells take under autocast


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
    if opened() and asked in ("auto", "native") and not why_not_repeated(cell, given):
        return compiled.run(cell, *given)
    short = _lane(cell, operation, asked, given)
    if short is not None and (lane := _lanes.get(short)) is not None and lane[0] == choice.generation():
        return lane[1].run(*given)
    if asked == "steps" or not given.x.shape[0]:  # without rows there is nothing to measure
        return steps.run(cell, *given)
    listed = _ways if choice.traced() else _kept_ways  # torch.compile does not trace a cache
    ways = listed(cell, operation, asked, on_gpu=given.x.device.type == "cuda")
    if choice.meeting() and given.x.device.type == "cpu" and not choice.traced():
        sizes, each = sizes_of(given), kinds()
        seen = tuple(given.x.shape[:2])
        choice.meet(f"{cell} {sizes} {each[0]}", partial(_decide, cell, sizes, each, seen, ways))
    asked = "auto" if asked == "torch" else asked
    way = pick(cell, ways, (given,), asked=asked, fastest=partial(_fastest, cell, given))
    if short is not None:
        if len(_lanes) >= LANES:
            _lanes.clear()
        _lanes[short] = choice.generation(), way
    return way.run(*given)


def _lane(cell: str, operation: Operation | None, asked: str, given: Given) -> Hashable | None:
    """What decides the way of a single step, or None where more does.

    Choosing a way takes as long as a small step; for single steps the answer is therefore remembered.
    """
    x, mask = given.x, given.mask
    if mask is not None or x.shape[1] != 1 or choice.meeting() or choice.traced():
        return None
    tensors = given.tensors()
    for tensor in tensors:
        if type(tensor) not in PLAIN:
            return None
    learning = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    low = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    kinds = [(tensor.dtype, tensor.device) for tensor in tensors]
    there = native.loaded().width
    return (
        cell,
        operation,
        asked,
        there,
        x.shape,
        given.weight_h.shape,
        learning,
        low,
        choice.threads(),
        *kinds,
    )


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
        narrow = partial(compiled.run, cell, kind="narrow")
        ways.append(Way("narrow", narrow, partial(_why_not_narrow, cell)))
        ways.append(Way("native", partial(compiled.run, cell), partial(why_not_native, cell)))
    if operation is not None:
        ways.append(Way("operation", operation, plain=True))
    if compiled_too:
        ways.append(Way("tiles", partial(compiled.run, cell, kind="tiles"), partial(_why_not_tiles, cell)))
    if on_gpu or asked == "triton":
        ways.append(Way("triton", partial(triton.run, cell), lambda given: triton.why_not(cell, given.x)))
    if cell in bptt.CELLS:
        ways.append(Way("bptt", partial(bptt.run, cell)))
    return [*ways, Way("steps", partial(steps.run, cell), plain=True)]


_kept_ways = lru_cache(_ways)
LANES = 4096
_lanes: dict[Hashable, tuple[int, Way[Result]]] = {}


def why_not_native(cell: str, given: Given) -> str:
    """Why the compiled cells cannot compute this layer; "" if they can."""
    if cell not in native.CELLS:
        return "this cell has no compiled code"
    if native.loaded().library is None:
        return native.loaded().reason
    if given.x.device.type != "cpu":
        return "the compiled cells run on the CPU"
    allowed = LOW if torch.is_autocast_enabled("cpu") else FLOAT
    if any(tensor.dtype not in allowed for tensor in given.tensors()):
        return f"the compiled cells compute in float32, not in {given.x.dtype}"
    if any(type(tensor) not in PLAIN for tensor in given.tensors()) or not given.x.numel():
        return "the compiled cells take plain tensors that are not empty"
    return ""


def why_not_repeated(cell: str, given: Given) -> str:
    """Why a loop should not take this step by the compiled cells; "" if it should."""
    if torch.is_autocast_enabled("cpu") or native.tiles():
        return "products in bfloat16 or on tiles may be faster"
    return why_not_native(cell, given)


def _why_not_narrow(cell: str, given: Given) -> str:
    if not native.narrow_cells():
        return "the compiled cells multiply in bfloat16 only with AVX512_BF16"
    if not (torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16):
        return "the compiled cells multiply in bfloat16 only under autocast"
    return why_not_native(cell, given)


def _why_not_tiles(cell: str, given: Given) -> str:
    return native.loaded("tiles").reason if not native.tiles() else why_not_native(cell, given)


def _fastest(cell: str, given: Given, can: Sequence[Way[Result]]) -> Way[Result]:
    ways = {way.name: way for way in can}
    names = _worth_measuring(ways, given)
    if len(names) == 1:
        return ways[names[0]]
    kind = kind_of(given, mostly_padding="operation" in ways and "operation" not in names)
    sizes = sizes_of(given)
    name = choice.known(key(cell, sizes, kind, "native" in names, choice.threads()))
    if name not in names:
        name = choose(cell, sizes, {name: ways[name] for name in names}, kind, given.x.shape[:2])
    return ways[name]


def _worth_measuring(can: Collection[str], given: Given) -> list[str]:
    """The names of `can`, without ways that are always slower than another."""
    device = given.x.device.type
    if "native" in can:
        skips = _mostly_padding(given.mask)
        wanted = ["narrow", "native", "tiles", *([] if skips else ["operation"])]
        wanted += ["steps"] if given.x.shape[1] == 1 else []
        return [name for name in can if name in wanted]
    if not inspectable(given.x):
        return ["operation" if "operation" in can else "steps"]
    if "operation" in can:  # cuDNN is always faster
        return ["operation", "bptt"] if device == "cpu" and "bptt" in can else ["operation"]
    if "triton" in can:  # not measured: a clock on the host times only the launches
        return ["triton"]
    return ["bptt" if "bptt" in can else "steps"]


def _mostly_padding(mask: Tensor | None) -> bool:
    """Whether there is so much padding that ways which skip it need no comparison with others."""
    return mask is not None and float(mask.sum()) < 0.75 * mask.numel()


def _decide(
    cell: str, sizes: Sizes, each: Sequence[Kind], seen: tuple[int, int], ways: Sequence[Way[Result]]
) -> None:
    """Choose now for every kind of call that this layer may receive."""
    for kind in each:
        mask = torch.zeros(1, 1, dtype=torch.bool) if kind.mostly_padding else None
        given = sample(sizes, rows=1, steps=1 if kind.steps == "1" else 2, mask=mask)
        with torch.autocast("cpu", torch.bfloat16, enabled=kind.autocast):
            can = {way.name: way for way in able(ways, (given,))}
            names = _worth_measuring(can, given)
        if len(names) > 1:
            choose(cell, sizes, {name: can[name] for name in names}, kind, seen)
