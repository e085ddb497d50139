"""Recurrent layers over all time steps: an LSTM, GRU, Elman network and their kin.

A layer is computed by one of several ways; choice.py has the rule, and the plain twin of each is the loop
over its cell's `step`:

native      compiled code, in float32 on the CPU                           compiled.py
narrow      compiled code that multiplies in bfloat16, under autocast      compiled.py
operation   torch's own operation: oneDNN, MKL, cuDNN                      operations.py
tiles       compiled code whose products use the processor's tiles (AMX)   compiled.py
triton      GPU kernels for cells that torch has no operation for, only if asked for   ../triton/layer.py
steps       the plain loop                                                 steps.py

Forms and meaning of the arguments: LayerInput in form.py. Read next: compiled.py.
"""

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from weft import native
from weft.native import jobs
from weft.nn.kernels import choice
from weft.nn.kernels.cells import compiled, operations, steps
from weft.nn.kernels.cells.form import FORMS, LayerInput, Norms, Operation, Recurrence, Result
from weft.nn.kernels.linear import linear, opened
from weft.nn.padding import inspectable
from weft.probe import exporting, mapped, traced

COMPILED: dict[str, compiled.Kind] = {"native": "float32", "narrow": "narrow", "tiles": "tiles"}
"""The ways in compiled code, and the kind of products that each computes with."""

OPERATIONS: Mapping[str, Operation] = {
    "lstm": operations.lstm,
    "coupled": operations.coupled,
    "gru": operations.gru,
    "gru_before": operations.gru_before,
    "elman": partial(operations.elman, torch.rnn_tanh),
    "relu": partial(operations.elman, torch.rnn_relu),
}
"""The cells for which there is something faster than the loop on every device."""


def run_layer(cell: str, given: LayerInput) -> Result:
    """A layer of a cell, one of FORMS (form.py)."""
    if exporting():
        return exported(cell, given) if cell in OPERATORS else steps.run(cell, given)
    asked = choice.forced("cells")
    if asked == "steps" or not given.x.shape[0]:
        return steps.run(cell, given)
    operation = OPERATIONS.get(cell)
    if traced():
        plain = operation is None or cell == "gru_before" or mapped()
        return steps.run(cell, given) if plain else operation(given)  # type: ignore[misc]
    if asked in ("auto", "torch", "fla"):
        way = _by_rule(cell, given, asked)
    elif reason := _why_not(asked, cell, given):
        raise choice.refused(cell, asked, reason)
    else:
        way = asked
    if way in COMPILED:
        return compiled.run(cell, given, kind=COMPILED[way])
    if way == "operation" and operation is not None:
        return operation(given)
    return by_triton(cell, given) if way == "triton" else steps.run(cell, given)


def skips_padding(x: Tensor) -> bool:
    """Whether the compiled cells, which skip padding themselves, may compute a layer over x [B, T, D]."""
    there = native.loaded().library is not None and choice.forced("cells") in ("auto", "native", "tiles")
    plain = x.dtype == torch.float32 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return there and plain and not traced()


def _by_rule(cell: str, given: LayerInput, asked: str) -> str:
    x, mask = given.x, given.mask
    can = ["operation"] if _has_operation(cell, x) else []
    if asked != "auto" or why_not_native(cell, given):
        return can[0] if can else "steps"
    can.append("native")
    low, tiled = torch.is_autocast_enabled("cpu"), native.tiles()
    if opened() and not low and not tiled:
        return "native"  # the steps of a loop share its packed weights
    if tiled:
        can.append("tiles")
    if low and not _why_not_narrow():
        can.append("narrow")
    training = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given)
    # so much padding that a way which does not skip it is slower
    padding = low and mask is not None and float(mask.sum()) < 0.75 * mask.numel()
    return choice.recurrent(
        choice.LayerShape(cell, x.shape[0], x.shape[1], given.h.shape[1], training, low, padding), can
    )


def _why_not(way: str, cell: str, given: LayerInput) -> str:
    """Why a way cannot compute this layer; "" if it can."""
    match way:
        case "native":
            return why_not_native(cell, given)
        case "narrow":
            return _why_not_narrow() or why_not_native(cell, given)
        case "tiles":
            return why_not_native(cell, given) if native.tiles() else native.loaded("tiles").reason
        case "triton":
            return "Triton has no kernel for this cell" if cell == "coupled" else ""
        case _:
            return "" if _has_operation(cell, given.x) else "torch has no operation for this cell"


def _has_operation(cell: str, x: Tensor) -> bool:
    return cell in OPERATIONS and (cell != "gru_before" or (x.is_cpu and inspectable(x)))


def why_not_native(cell: str, given: LayerInput) -> str:
    """Why the compiled cells cannot compute this layer; "" if they can."""
    if cell not in jobs.CELLS:
        return "this cell has no compiled code"
    return choice.why_not_layer("cells", given[:-1], (torch.bfloat16,))


def _why_not_narrow() -> str:
    if not native.narrow_cells():
        return "the compiled cells multiply in bfloat16 only with AVX512_BF16"
    if not (torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16):
        return "the compiled cells multiply in bfloat16 only under autocast"
    return ""


def by_triton(cell: str, given: LayerInput) -> Result:
    """A layer by Triton."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    inside = cell == "elman_modrelu"
    z = linear(x, weight_x, None if inside else bias)
    return triton_layer(FORMS[cell], z, h, c, weight_h, bias if inside else extra, None, mask)


def triton_asked() -> bool:
    """Whether `triton_layer` computes a form that nothing else has; otherwise the cell runs step by step."""
    return choice.forced("cells") == "triton" and not traced()


def triton_layer(
    form: Recurrence,
    z: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_h: Tensor,
    extra: Tensor | None = None,
    norms: Norms | None = None,
    mask: Tensor | None = None,
) -> Result:
    """A layer by Triton, also of a form that nothing else has: `run` of ../triton/layer.py."""
    from weft.nn.kernels import triton  # on a GPU only, and if asked for

    if reason := triton.why_not(z.device):
        raise choice.refused("cells", "triton", reason)
    from weft.nn.kernels.triton.layer import run as kernel

    return kernel(form, z, h, c, weight_h, extra, norms, mask)


OPERATORS = ("lstm", "peephole", "coupled", "gru", "gru_before", "elman", "relu")
"""Cells, by their names in the kernels, that ONNX has an operator for."""


def exported(cell: str, given: LayerInput) -> Result:
    """A layer of one of OPERATORS as one node of a graph."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask
    size = weight_h.shape[1]
    last_c = h if c is None else c
    inner = torch.zeros_like(bias)
    if cell == "gru" and extra is not None:
        inner = torch.cat([inner[: 2 * size], extra])
    peep = extra if cell == "peephole" and extra is not None else bias.new_zeros(3, size)
    y, h, last_c = recurrent_layer(cell, x, h, last_c, weight_x, weight_h, bias, inner, peep, real.sum(1))
    return y, h, None if c is None else last_c


@torch.library.custom_op("weft::recurrent_layer", mutates_args=())
def recurrent_layer(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    inner: Tensor,
    peep: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The node of a graph that torch exports, without a gradient; export/graphs.py translates it for ONNX.

    Args:
        x: [B, T, D]; h, c: [B, H].
        weight_x: [G H, D]; weight_h: [G H, H]; bias, inner: [G H], the biases of the two products.
        lengths: [B] int64, number of real positions, which come first.

    Returns:
        y [B, T, H], h, c [B, H].
    """
    size, steps_ = h.shape[1], torch.arange(x.shape[1], device=x.device)
    extra = inner[2 * size :] if cell == "gru" else peep if cell == "peephole" else None
    old = c if FORMS[cell].kind in ("lstm", "coupled") else None
    given = LayerInput(x, h, old, weight_x, weight_h, bias, extra, steps_ < lengths[:, None])
    with torch.no_grad():
        y, h, last = run_layer(cell, given)
    return y, h.clone(), c.clone() if last is None else last.clone()


@recurrent_layer.register_fake
def _(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    inner: Tensor,
    peep: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape[0], x.shape[1], h.shape[1]), torch.empty_like(h), torch.empty_like(c)
