"""Recurrent layers in compiled code, float32 on the CPU. Read next: ../../native/cells.cpp.

Internally the time axis is first, [T, B, ..]. Rows are sorted by length and dealt to the threads, so that
padding is skipped and no thread waits for another. The plain twin is the loop over a cell's `step`.
"""

from typing import Any

import torch
from torch import Tensor

from weft import native
from weft.native import CELLS, GATES, pointer
from weft.nn.kernels import tiles
from weft.nn.kernels.cells import steps as steps_
from weft.nn.kernels.cells.rows import Sorted, sort
from weft.nn.kernels.linear import linear

ROWS = 4  # a slab of fewer rows is not worth a thread
APART = 1 << 19  # from this many elements of W_x on, batches of few rows multiply all steps of x beforehand
FEW = 24  # rows


def run(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    extra: Tensor | None,
    mask: Tensor | None,
    *,
    tiled: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Compute a layer.

    Args:
        cell: lstm, peephole, coupled, gru, elman or relu.
        x: [B, T, D]; h, c: [B, H], c only for the first three.
        weight_x: [G H, D]; weight_h: [G H, H]; bias: [G H].
        extra: peephole [3, H], gru [H] (the candidate's inner bias).
        mask: [B, T] bool, real positions first, or None.
        tiled: multiply on the processor's tiles, which must be available.

    Returns:
        y [B, T, H] (zero at padding), h, c [B, H].
    """
    rows = sort(x, mask, native.slabs(len(x) // ROWS))
    x, h, c = rows.take(x), rows.take(h), rows.take(c)  # type: ignore[assignment]
    wanted = [t for t in (x, h, c, weight_x, weight_h, bias, extra) if t is not None and t.requires_grad]
    training = torch.is_grad_enabled() and bool(wanted)
    y, h, c = _Layer.apply(cell, tiled, rows, training, x, h, c, weight_x, weight_h, bias, extra)
    return rows.give_back(y), rows.give_back(h), rows.give_back(c)  # type: ignore[return-value]


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        cell: str,
        tiled: bool,
        plan: Sorted,
        training: bool,
        x: Tensor,
        h: Tensor,
        c: Tensor | None,
        weight_x: Tensor,
        weight_h: Tensor,
        bias: Tensor,
        extra: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        (rows, steps, _), (wide, size) = x.shape, weight_h.shape
        weight_x, weight_h, bias = weight_x.contiguous(), weight_h.contiguous(), bias.contiguous()
        extra = None if extra is None else extra.contiguous()
        if x.stride(2) != 1:
            x = x.contiguous()
        apart = tiled or rows <= ROWS or (rows < FEW and weight_x.numel() >= APART)
        new = x.new_empty if plan.lengths is None else x.new_zeros
        gates = None
        if apart:
            gates = linear(x.transpose(0, 1), weight_x, bias)
        elif training and cell not in ("elman", "relu"):
            gates = x.new_empty(steps, rows, wide)
        inner = x.new_empty(steps, rows, size) if cell == "gru" and training else None
        hs = new(steps + 1, rows, size)
        hs[0] = h
        cs = None
        if c is not None:
            cs = x.new_empty(steps + 1 if training else 1, rows, size)
            cs[0] = c  # in training one state per step, else one that is updated in place
        panel_x = None if apart else _panel(cell, weight_x, size)
        panel_h = tiles.panel(GATES[cell], size, weight_h) if tiled else _panel(cell, weight_h, size)
        room = tiles.room(_most(plan), size, len(plan.active)) if tiled else None
        job = native.Forward(
            CELLS[cell], steps, rows, size, x.shape[2], len(plan.active), training, *x.stride()[:2],
            pointer(plan.bounds), pointer(plan.active), None if apart else pointer(x), pointer(panel_x),
            pointer(panel_h), pointer(bias), pointer(extra) if cell == "gru" else None,
            pointer(extra) if cell == "peephole" else None, pointer(gates), pointer(inner), pointer(hs),
            pointer(cs), *tiles.given(room),
        )  # fmt: skip
        native.call("weft_forward", job)
        if training:
            ctx.save_for_backward(x, weight_x, weight_h, extra, hs, cs, gates, inner, h, c, bias)
            ctx.cell, ctx.tiled, ctx.plan = cell, tiled, plan
        ctx.set_materialize_grads(False)
        y = hs[1:].transpose(0, 1)
        if plan.lengths is None:
            return y, hs[-1].clone(), None if cs is None else cs[-1].clone()
        each = torch.arange(rows)
        last_c = None if cs is None else cs[plan.lengths, each] if training else cs[0]
        return y, hs[plan.lengths, each], last_c

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, dy: Tensor | None, dh_last: Tensor | None, dc: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        x, weight_x, weight_h, extra, hs, cs, gates, inner, h, c, bias = ctx.saved_tensors
        cell, tiled, plan = ctx.cell, ctx.tiled, ctx.plan
        if torch.is_grad_enabled():  # for a second derivative
            given = (x, h, c, weight_x, weight_h, bias, extra)
            return (None, None, None, None, *steps_.derived(cell, plan, given, (dy, dh_last, dc)))
        (rows, steps, _), (wide, size) = x.shape, weight_h.shape
        gru = cell == "gru"
        dy = None if dy is None else dy.transpose(0, 1).contiguous()
        dh_last = None if dh_last is None else dh_last.contiguous()
        if cs is not None:
            dc = x.new_zeros(rows, size) if dc is None else dc.clone(memory_format=torch.contiguous_format)
        new = x.new_empty if plan.lengths is None else x.new_zeros
        d = new(steps, rows, 4 * size if gru else wide)
        dh, carry = x.new_empty(rows, size), x.new_empty(rows, size) if gru else None
        dextra = x.new_zeros(len(plan.active), 3, size) if cell == "peephole" else None
        panel = tiles.panel(1, size, weight_h, back=True) if tiled else _panel_back(weight_h, size)
        room = tiles.room(_most(plan), wide, len(plan.active)) if tiled else None
        job = native.Backward(
            CELLS[cell], steps, rows, size, len(plan.active), pointer(plan.bounds),
            pointer(plan.active), pointer(panel), pointer(gates), pointer(inner), pointer(hs), pointer(cs),
            pointer(extra) if cell == "peephole" else None, pointer(dy), pointer(dh_last), pointer(dc),
            pointer(dh), pointer(carry), pointer(d), pointer(dextra),
            *tiles.given(room),
        )  # fmt: skip
        native.call("weft_backward", job)
        # Saved tensors are read only once: under recomputation they can be unpacked once.
        return (None, None, None, None, *_products(ctx, (x, weight_x, hs), d, dh, dc, dextra, plan.real()))


def _products(
    ctx: Any,
    saved: tuple[Tensor, Tensor, Tensor],
    d: Tensor,
    dh: Tensor,
    dc: Tensor | None,
    dextra: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """The gradients of `forward`'s arguments; each weight's is one product over all real steps."""
    x, weight_x, hs = saved
    steps, rows, size = d.shape[0], d.shape[1], hs.shape[2]
    needs = dict(
        zip(("x", "h", "c", "weight_x", "weight_h", "bias", "extra"), ctx.needs_input_grad[4:], strict=True)
    )
    flat = d.view(steps * rows, -1)
    inputs, states = x.transpose(0, 1), hs[:-1].flatten(0, 1)
    if real is not None:
        flat, states = flat[real], states[real]
        inputs = inputs[torch.div(real, rows, rounding_mode="floor"), real % rows]
    inputs = inputs.reshape(-1, x.shape[2])
    before, after = flat, flat
    if ctx.cell == "gru":  # columns: candidate's W_x side, r, u, candidate's W_h side
        before, after = flat[:, : 3 * size], flat[:, size:]
        weight_x = torch.cat([weight_x[2 * size :], weight_x[: 2 * size]])
    dx = dwx = dwh = db = None
    if needs["x"]:
        dx = linear(before, weight_x.mT)
        if real is not None:
            dx = x.new_zeros(steps * rows, x.shape[2]).index_copy_(0, real, dx)
        dx = dx.view(steps, rows, -1).transpose(0, 1)
    if needs["weight_x"]:
        dwx = _gru_order(ctx.cell, linear(before.mT, inputs.mT), size)
    if needs["weight_h"]:
        dwh = linear(after.mT, states.mT)
    if needs["bias"] or needs["extra"]:
        sums = flat.sum(0)
        db = _gru_order(ctx.cell, sums[: 3 * size] if ctx.cell == "gru" else sums, size)
        if ctx.cell == "gru":
            dextra = sums[3 * size :]
    return (
        dx,
        dh,
        dc,
        dwx,
        dwh,
        db,
        dextra.sum(0) if ctx.cell == "peephole" and dextra is not None else dextra,
    )


def _gru_order(cell: str, grad: Tensor, size: int) -> Tensor:
    return torch.cat([grad[size:], grad[:size]]) if cell == "gru" else grad


def _panel(cell: str, weight: Tensor, size: int) -> Tensor:
    library = native.loaded()
    units = -(-size // library.width) * library.width
    panel = weight.new_empty(units * GATES[cell] * weight.shape[1])
    library.library.weft_pack_forward(CELLS[cell], size, weight.shape[1], pointer(weight), pointer(panel))
    return panel


def _panel_back(weight: Tensor, size: int) -> Tensor:
    library = native.loaded()
    units = -(-size // library.width) * library.width
    panel = weight.new_empty(units * len(weight))
    library.library.weft_pack_backward(size, len(weight), pointer(weight), pointer(panel))
    return panel


def _most(plan: Sorted) -> int:
    """Number of rows of the largest slab."""
    return int(plan.bounds.diff().max())
