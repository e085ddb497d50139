"""Mamba's selective scan over all steps: h_t = exp(dt_t A) h_{t-1} + dt_t u_t B_t, s_t = C_t h_t.

native   one pass of compiled code that never writes h for all steps, float32 on the CPU
steps    the plain loop, which also computes second derivatives

Read next: ../cells/mamba.py; ../../native/selective.cpp.
"""

from typing import Any

import torch
from torch import Tensor

from weft import native
from weft.native import dense, jobs, pointer
from weft.nn.kernels.choice import compiles
from weft.nn.kernels.twin import twin_gradients

CHUNK = 16
"""Steps between the states that the backward pass starts from; as in selective.cpp."""
MOST = 64
"""Maximum number of states of a feature in compiled code."""

Scan = tuple[Tensor, Tensor]


def selective(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    """All steps.

    Args:
        u, dt: [B, T, E], inputs and step sizes; where dt is 0, h stays.
        a: [N, E], at most 0.
        b, c: [B, T, N], what enters and what is read.
        h: [B, N, E], the initial state.

    Returns:
        s [B, T, E], and the last h.
    """
    given = u, dt, a, b, c, h
    limit = f"compiled code has at most {MOST} states a feature, not {len(a)}" if len(a) > MOST else ""
    return (_native if compiles("selective", *given, limit=limit) else by_steps)(*given)


def by_steps(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    """`selective` with a few nodes of the graph for every step."""
    ys = []
    for at in zip(u.unbind(1), dt.unbind(1), b.unbind(1), c.unbind(1), strict=True):
        y, h = selective_step(at[0], at[1], a, at[2], at[3], h)
        ys.append(y)
    return torch.stack(ys, 1), h


def selective_step(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    """One step: u and dt [B, E], b and c [B, N], h [B, N, E] to s [B, E] and the next h."""
    h = torch.exp(dt[:, None] * a) * h + (dt * u)[:, None] * b[:, :, None]
    return (c[:, :, None] * h).sum(1), h


def _native(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    given = [each.float() for each in (u, dt, a, b, c, h)]
    wanted = torch.is_grad_enabled() and any(each.requires_grad for each in given)
    y, last = _Selective.apply(wanted, *given)
    return y, last


class _Selective(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, training: bool, *given: Tensor) -> Scan:  # type: ignore[override]
        u, dt, a, b, c, h = given
        u, dt, b, c = map(dense, (u, dt, b, c))
        a, last = a.contiguous(), h.clone(memory_format=torch.contiguous_format)
        rows, steps, size = u.shape
        kept = h.new_empty(rows, -(-steps // CHUNK), *a.shape) if training else None
        y = u.new_empty(rows, steps, size)
        bounds, job = _job(u, dt, a, b, c, last, kept, y)
        native.call("weft_selective_forward", job)
        del bounds
        if training:
            ctx.save_for_backward(u, dt, a, b, c, h, kept)
        ctx.set_materialize_grads(False)
        return y, last

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, dlast: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *given, kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return None, *twin_gradients(by_steps, given, (dy, dlast))
        u, dt, a, b, c, h = given
        dy = torch.zeros_like(u, memory_format=torch.contiguous_format) if dy is None else dy.contiguous()
        dh = h.new_zeros(h.shape) if dlast is None else dlast.clone(memory_format=torch.contiguous_format)
        bounds, job = _job(u, dt, a, b, c, h, kept, None)
        du, ddt = u.new_empty(u.shape), u.new_empty(u.shape)
        db, dc = b.new_empty(b.shape), b.new_empty(b.shape)
        da = a.new_zeros(len(bounds) - 1, *a.shape)
        back = jobs.SelectiveBack(job, job.slabs, *map(pointer, (dy, dh, du, ddt, db, dc, da)))
        native.call("weft_selective_backward", back)
        return None, du, ddt, da.sum(0), db, dc, dh


def _job(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, kept: Tensor | None, y: Tensor | None
) -> tuple[Tensor, jobs.Selective]:
    """The bounds and the job for the compiled code; the bounds must outlive the call."""
    rows, steps, size = u.shape
    slabs = native.slabs(rows)
    bounds = torch.arange(slabs + 1) * rows // slabs
    strides = [number for each in (u, dt, b, c) for number in each.stride()[:2]]
    tensors = (bounds, u, dt, a, b, c, h, kept, y)
    return bounds, jobs.Selective(steps, rows, size, len(a), slabs, *strides, *map(pointer, tensors))
