"""Recurrences without a matrix on a GPU: one program computes all steps of some units of a row.

As in native/light.cpp, gates and state are computed in one pass, and the backward pass computes the gates
again. The plain twin is ../light.py's `by_torch`.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from weft.nn.kernels.triton.steps import sigmoid
from weft.nn.kernels.twin import twin_gradients

UNITS = 64  # per program; many programs hide memory latency better than wide ones


@triton.jit
def gates(z, peep, before, u, real, H, KIND: tl.constexpr, PEEP: tl.constexpr):
    """f (or u), the candidate and r (0 for kinds without r)."""
    first, second = tl.load(z + u, real, 0.0), tl.load(z + H + u, real, 0.0)
    out = first * 0.0
    if KIND == "sru":
        out, candidate, keep = tl.load(z + 2 * H + u, real, 0.0), first, second
        if PEEP:
            keep += tl.load(peep + u, real, 0.0) * before
            out += tl.load(peep + H + u, real, 0.0) * before
        keep, out = sigmoid(keep), sigmoid(out)
    elif KIND == "minlstm":
        least = tl.minimum(tl.minimum(first, second), 0.0)  # no exponent is above 0
        both, f, i = tl.exp(least), tl.exp(least - first), tl.exp(least - second)
        keep, candidate = (both + i) / (2.0 * both + f + i), tl.load(z + 2 * H + u, real, 0.0)
    else:
        keep, candidate = sigmoid(first), second
    return keep, candidate, out


@triton.jit
def forward(
    z,
    past,
    peep,
    mask,
    cs,
    ys,
    T,
    H,
    G,
    KIND: tl.constexpr,
    PEEP: tl.constexpr,
    MASKED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill cs [B, T + 1, H] after its first step, which is given, and ys [B, T, H]."""
    row, u = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = u < H
    c = tl.load(cs + row * (T + 1) * H + u, real, 0.0)
    for t in range(T):
        at = row * T + t
        keep, candidate, out = gates(z + at * G, peep, c, u, real, H, KIND, PEEP)
        new = keep * c + (1.0 - keep) * candidate
        y = new
        if KIND == "sru":
            y = out * new + (1.0 - out) * tl.load(past + at * H + u, real, 0.0)
        elif KIND == "ssru":
            y = tl.where(new < 0, 0.0, new)
        if MASKED:
            there = tl.load(mask + at) != 0
            new, y = tl.where(there, new, c), tl.where(there, y, 0.0)
        c = new
        tl.store(cs + (at + row + 1) * H + u, c, real)
        tl.store(ys + at * H + u, y, real)


@triton.jit
def gate_gradients(z, u, real, H, keep, by_keep, by_c, by_out, KIND: tl.constexpr):
    """Gradients of the parts of z, from those of f (or u), of c and, for SRU, of r's pre-activation."""
    by_candidate = by_c * (1.0 - keep)
    if KIND == "minlstm":
        by_odds = by_keep * keep * (1.0 - keep)
        one = by_odds * sigmoid(-tl.load(z + u, real, 0.0))
        two = -by_odds * sigmoid(-tl.load(z + H + u, real, 0.0))
        three = by_candidate
    elif KIND == "sru":
        one, two, three = by_candidate, by_keep * keep * (1.0 - keep), by_out
    else:
        one, two, three = by_keep * keep * (1.0 - keep), by_candidate, by_candidate
    return one, two, three


@triton.jit
def backward(
    z,
    past,
    peep,
    mask,
    cs,
    dy,
    dc,
    dz,
    dpast,
    T,
    H,
    G,
    KIND: tl.constexpr,
    PEEP: tl.constexpr,
    MASKED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gradients dz, dpast; dc [B, H] of c_T is overwritten by that of c_0."""
    row, u = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = u < H
    by_later = tl.load(dc + row * H + u, real, 0.0)
    for back in range(T):
        t = T - 1 - back
        at = row * T + t
        before = tl.load(cs + (at + row) * H + u, real, 0.0)
        keep, candidate, out = gates(z + at * G, peep, before, u, real, H, KIND, PEEP)
        by_y = tl.load(dy + at * H + u, real, 0.0)
        if MASKED:
            there = tl.load(mask + at) != 0
            by_y = tl.where(there, by_y, 0.0)
        by_c, c = by_later, tl.load(cs + (at + row + 1) * H + u, real, 0.0)
        by_out = by_y * 0.0
        if KIND == "sru":
            by_c += by_y * out
            carried = tl.load(past + at * H + u, real, 0.0)
            by_out = by_y * (c - carried) * out * (1.0 - out)
            tl.store(dpast + at * H + u, by_y * (1.0 - out), real)
        elif KIND == "ssru":
            by_c += tl.where(c > 0, by_y, 0.0)
        else:
            by_c += by_y
        by_keep = by_c * (before - candidate)
        one, two, three = gate_gradients(z + at * G, u, real, H, keep, by_keep, by_c, by_out, KIND)
        later = by_c * keep
        if PEEP:
            later += two * tl.load(peep + u, real, 0.0) + three * tl.load(peep + H + u, real, 0.0)
        if MASKED:
            one, two = tl.where(there, one, 0.0), tl.where(there, two, 0.0)
            three, later = tl.where(there, three, 0.0), tl.where(there, later, by_later)
        mine = dz + at * G + u
        tl.store(mine, one, real)
        tl.store(mine + H, two, real)
        if KIND == "minlstm" or KIND == "sru":
            tl.store(mine + 2 * H, three, real)
        by_later = later
    tl.store(dc + row * H + u, by_later, real)


def run(
    kind: str,
    z: Tensor,
    c: Tensor,
    past: Tensor | None,
    peep: Tensor | None,
    mask: Tensor | None,
    twin: Callable[..., tuple[Tensor, Tensor]],
) -> tuple[Tensor, Tensor]:
    """Compute a layer; see light.light. twin: maps z, c, past and peep to the same result by a plain loop."""
    wide = torch.promote_types(torch.promote_types(z.dtype, c.dtype), torch.float32)
    given = [None if t is None else t.to(wide).contiguous() for t in (z, c, past, peep)]
    bytes_ = None if mask is None else mask.to(torch.uint8).contiguous()
    y, last = _Light.apply(kind, bytes_, twin, *given)
    return y, last


class _Light(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, kind: str, mask: Tensor | None, twin: Any, z: Tensor, c: Tensor, past: Tensor | None,
        peep: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        (rows, steps, _), size = z.shape, c.shape[1]
        states, y = z.new_empty(rows, steps + 1, size), z.new_empty(rows, steps, size)
        states[:, 0] = c
        grid, settings = _settings(kind, z, c, peep, mask)
        forward[grid](z, *(z if t is None else t for t in (past, peep, mask)), states, y, *settings)
        ctx.save_for_backward(z, c, past, peep, states)
        ctx.kind, ctx.mask, ctx.twin = kind, mask, twin
        return y, states[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dc: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        z, c, past, peep, states = ctx.saved_tensors
        mask = ctx.mask
        if torch.is_grad_enabled():  # for a second derivative
            return None, None, None, *twin_gradients(ctx.twin, (z, c, past, peep), (dy, dc))
        dy, dc, dz = dy.contiguous(), dc.clone(memory_format=torch.contiguous_format), torch.empty_like(z)
        dpast = None if past is None else torch.empty_like(past)
        grid, settings = _settings(ctx.kind, z, c, peep, mask)
        given = (z if t is None else t for t in (past, peep, mask))
        backward[grid](z, *given, states, dy, dc, dz, z if dpast is None else dpast, *settings)
        dpeep = None
        if peep is not None:
            before = states[:, :-1]
            _, by_f, by_r = dz.chunk(3, -1)
            dpeep = torch.stack([(by_f * before).sum((0, 1)), (by_r * before).sum((0, 1))])
        return None, None, None, dz, dc, dpast, dpeep


def _settings(
    kind: str, z: Tensor, c: Tensor, peep: Tensor | None, mask: Tensor | None
) -> tuple[tuple[int, int], tuple[Any, ...]]:
    """The grid, and the kernels' arguments after the tensors."""
    size = c.shape[1]
    block = min(UNITS, triton.next_power_of_2(size))
    grid = (len(z), triton.cdiv(size, block))
    return grid, (z.shape[1], size, z.shape[2], kind, peep is not None, mask is not None, block)
