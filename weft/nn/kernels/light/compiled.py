"""Recurrences without a matrix in compiled code, float32 on the CPU. Read next: ../../native/light.cpp.

The plain twin is plain.py's `by_torch`, which also computes second derivatives.
"""

from typing import Any

import torch
from torch import Tensor

from weft import native
from weft.native import LIGHT, pointer
from weft.nn.kernels.cells.compiled import ROWS
from weft.nn.kernels.light.plain import gradients_as_graph


def run(
    kind: str, z: Tensor, c: Tensor, past: Tensor | None, peep: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute a layer; see light.light."""
    wanted = any(t is not None and t.requires_grad for t in (z, c, past, peep))
    y, last = _Light.apply(kind, torch.is_grad_enabled() and wanted, mask, z, c, past, peep)
    return y, last


class _Light(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        kind: str,
        training: bool,
        mask: Tensor | None,
        z: Tensor,
        c: Tensor,
        past: Tensor | None,
        peep: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        z, past = _dense(z), None if past is None else _dense(past)
        c, peep = c.contiguous(), None if peep is None else peep.contiguous()
        (rows, steps, _), size = z.shape, c.shape[1]
        alone = kind in ("mingru", "minlstm") and mask is None  # the states are the output
        states = z.new_empty(rows, steps if training or alone else 1, size)
        y = states if alone else z.new_empty(rows, steps, size)
        _bounds, job = _job(kind, z, c, past, peep, mask, states)
        job.y = None if alone else pointer(y)
        native.call("weft_light_forward", job)
        if training:
            ctx.save_for_backward(z, c, past, peep, states)
            ctx.kind, ctx.mask = kind, mask
        ctx.set_materialize_grads(False)
        return y, states[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, dc: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        z, c, past, peep, states = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return None, None, None, *gradients_as_graph(ctx.kind, (z, c, past, peep), ctx.mask, dy, dc)
        dy = None if dy is None else dy.contiguous()
        dc = torch.zeros_like(c) if dc is None else dc.clone(memory_format=torch.contiguous_format)
        dz = z.new_empty(z.shape)
        dpast = None if past is None else past.new_empty(past.shape)
        bounds, job = _job(ctx.kind, z, c, past, peep, ctx.mask, states)
        dpeep = None if peep is None else peep.new_zeros(len(bounds) - 1, *peep.shape)
        row, step = (0, 0) if dpast is None else dpast.stride()[:2]
        back = native.LightBack(
            job, job.slabs, dz.stride(0), dz.stride(1), row, step,
            pointer(dy), pointer(dc), pointer(dz), pointer(dpast), pointer(dpeep),
        )  # fmt: skip
        native.call("weft_light_backward", back)
        return None, None, None, dz, dc, dpast, None if dpeep is None else dpeep.sum(0)


def _job(
    kind: str,
    z: Tensor,
    c: Tensor,
    past: Tensor | None,
    peep: Tensor | None,
    mask: Tensor | None,
    states: Tensor,
) -> tuple[Tensor, native.Light]:
    """The bounds and the job for the compiled code; bounds and mask must outlive the call."""
    rows, steps = z.shape[:2]
    slabs = native.slabs(rows // ROWS)
    bounds = torch.arange(slabs + 1) * rows // slabs
    mask = None if mask is None else mask.contiguous()
    job = native.Light(
        LIGHT[kind], steps, rows, c.shape[1], slabs, z.stride(0), z.stride(1),
        *((0, 0) if past is None else past.stride()[:2]),
        states.stride(0), states.stride(1) if states.shape[1] == steps else 0,
        pointer(bounds), pointer(z), pointer(past), pointer(peep), pointer(mask), pointer(c), pointer(states),
    )  # fmt: skip
    job.kept = mask  # type: ignore[attr-defined]
    return bounds, job


def _dense(tensor: Tensor) -> Tensor:
    """A tensor whose features are contiguous and whose positions do not overlap; copied if necessary."""
    dense = tensor.stride(2) == 1 and min(tensor.stride()[:2]) >= tensor.shape[2]
    return tensor if dense else tensor.contiguous()
