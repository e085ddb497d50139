"""A recurrent layer, computed by one of several ways. Read next: ../rules.py, which chooses; compiled.py.

native      compiled code, in float32 on the CPU                           compiled.py
narrow      compiled code that multiplies in bfloat16, under autocast      compiled.py
operation   torch's own operation: oneDNN, MKL, cuDNN                      operations.py
tiles       compiled code whose products use the processor's tiles (AMX)   compiled.py, ../tiles.py
triton      GPU kernels for cells that torch has no operation for          on_gpu.py
steps       the plain loop                                                 steps.py
"""

import torch
from torch import Tensor, nn

from weft import native
from weft.errors import ConfigError
from weft.native import jobs
from weft.nn.kernels import choice, rules
from weft.nn.kernels.cells import compiled, steps
from weft.nn.kernels.cells import on_gpu as triton
from weft.nn.kernels.cells.form import LayerInput, Operation, Result
from weft.nn.kernels.exported import OPERATORS, layer
from weft.nn.kernels.repeated import opened
from weft.shapes import exporting

__all__ = ["LayerInput", "run", "skips_padding"]

PLAIN = (Tensor, nn.Parameter)
FLOAT = (torch.float32,)
LOW = (torch.float32, torch.bfloat16)  # what the compiled cells take under autocast
COMPILED: dict[str, compiled.Kind] = {"native": "float32", "narrow": "narrow", "tiles": "tiles"}
"""The ways in compiled code, and the kind of products that each computes with."""


def run(cell: str, given: LayerInput, operation: Operation | None) -> Result:
    """Compute a layer.

    Args:
        cell: a name of steps.run.
    """
    if exporting():
        return layer(cell, given) if cell in OPERATORS else steps.run(cell, given)
    asked = choice.forced("cells")
    if opened() and asked in ("auto", "native") and not why_not_repeated(cell, given):
        return compiled.run(cell, given)
    if asked == "steps" or not given.x.shape[0]:
        return steps.run(cell, given)
    if choice.traced():
        plain = operation is None or choice.mapped()
        return steps.run(cell, given) if plain else operation(given)  # type: ignore[misc]
    if asked in ("auto", "torch"):
        way = _by_rule(cell, given, operation, compiled_too=asked == "auto")
    else:
        way = asked
        if reason := _why_not(way, cell, given, operation):
            raise ConfigError(f"{cell}: cannot use {way}: {reason}; force torch instead")
    if way in COMPILED:
        return compiled.run(cell, given, kind=COMPILED[way])
    if way == "operation" and operation is not None:
        return operation(given)
    return (triton.run if way == "triton" else steps.run)(cell, given)


def skips_padding(x: Tensor) -> bool:
    """Whether the compiled cells, which skip padding themselves, may compute a layer over x [B, T, D]."""
    there = native.loaded().library is not None and choice.forced("cells") in ("auto", "native", "tiles")
    plain = x.dtype == torch.float32 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return there and plain and not choice.traced()


def _by_rule(cell: str, given: LayerInput, operation: Operation | None, *, compiled_too: bool) -> str:
    can = [] if operation is None else ["operation"]
    if compiled_too and not why_not_native(cell, given):
        can.append("native")
        if native.tiles():
            can.append("tiles")
        low = torch.is_autocast_enabled("cpu")
        if low and not _why_not_narrow():
            can.append("narrow")
        rows, steps_ = given.x.shape[:2]
        training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.tensors())
        # so much padding that a way which does not skip it is slower
        padding = low and given.mask is not None and float(given.mask.sum()) < 0.75 * given.mask.numel()
        return rules.recurrent(
            rules.LayerShape(cell, rows, steps_, given.h.shape[1], training, low, padding), can
        )
    if given.x.device.type == "cuda" and operation is None and not triton.why_not(cell, given.x):
        return "triton"
    return "operation" if operation is not None else "steps"


def _why_not(way: str, cell: str, given: LayerInput, operation: Operation | None) -> str:
    """Why a forced way cannot compute this layer; "" if it can."""
    match way:
        case "native":
            return why_not_native(cell, given)
        case "narrow":
            return _why_not_narrow() or why_not_native(cell, given)
        case "tiles":
            return why_not_native(cell, given) if native.tiles() else native.loaded("tiles").reason
        case "operation":
            return "torch has no operation for this cell" if operation is None else ""
        case _:
            return triton.why_not(cell, given.x)


def why_not_native(cell: str, given: LayerInput) -> str:
    """Why the compiled cells cannot compute this layer; "" if they can."""
    if cell not in jobs.CELLS:
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


def why_not_repeated(cell: str, given: LayerInput) -> str:
    """Why a loop should not take this step by the compiled cells; "" if it should."""
    if torch.is_autocast_enabled("cpu") or native.tiles():
        return "products in bfloat16 or on tiles may be faster"
    return why_not_native(cell, given)


def _why_not_narrow() -> str:
    if not native.narrow_cells():
        return "the compiled cells multiply in bfloat16 only with AVX512_BF16"
    if not (torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16):
        return "the compiled cells multiply in bfloat16 only under autocast"
    return ""
