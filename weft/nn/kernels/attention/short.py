"""Attention over short sequences in training, in compiled code, one head of a row at a time.

The weights [B, H, T, S] are kept for the backward pass, as the formula keeps them; torch's fused operation
computes them again and is made for long sequences. The twin is dot.py's `plain_attention`.
Read next: ../../../native/attention.cpp.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft import native
from weft.native import pointer
from weft.nn.kernels.choice import fused, why_not_native

LONGEST, WIDEST = 128, 64  # positions and features of a head, as in attention.cpp


def why_not_short(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> str:
    """Why `short_attention` cannot compute this, or is not faster; "" if it can."""
    if fused() == "torch":
        return "compiled code is turned off"
    if dropout or bias is not None or not (q.dtype == k.dtype == v.dtype == torch.float32):
        return "compiled attention takes float32, no dropout and no bias"
    if not (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)):
        return "without gradients the fused operation is faster"
    if max(q.shape[2], k.shape[2]) > LONGEST or q.shape[3] > WIDEST or q.shape[:2] != k.shape[:2]:
        return f"compiled attention takes up to {LONGEST} positions and heads of up to {WIDEST} features"
    if mask is not None and mask.shape[1:] != (1, 1, k.shape[2]):
        return "compiled attention takes masks of keys"
    if why := why_not_native(q, "attention"):
        return why
    whole = not q.shape[3] % native.loaded("attention").width
    return "" if whole else "the features of a head do not fill registers"


def short_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, causal: bool, twin: Callable[..., Tensor]
) -> Tensor:
    """`attention` of dot.py, where `why_not_short` finds nothing; `twin` serves for second derivatives."""
    return _Short.apply(_rows(q), _rows(k), _rows(v), mask, causal, twin)  # type: ignore[no-any-return]


class _Short(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        causal: bool,
        twin: Callable[..., Tensor],
    ) -> Tensor:
        seen = None if mask is None else mask[:, 0, 0].expand(len(q), -1).contiguous()
        (rows, heads, queries, size), width = q.shape, native.loaded("attention").width
        weights = q.new_empty(rows, heads, queries, math.ceil(k.shape[2] / width) * width)
        y = q.new_empty(rows, queries, heads, size)
        job = _job(q, k, v, causal)
        job.mask, job.weights, job.y = map(pointer, (seen, weights, y))
        native.call("weft_attend", job)
        ctx.save_for_backward(q, k, v, mask, seen, weights)
        ctx.causal, ctx.twin = causal, twin
        return y.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, mask, seen, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            y = ctx.twin(q, k, v, mask, causal=ctx.causal)
            wanted = [each for each in (q, k, v) if each.requires_grad]
            found = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
            return *(next(found) if each.requires_grad else None for each in (q, k, v)), None, None, None
        dy = _rows(dy)
        dq, dk, dv = (torch.empty_like(each.transpose(1, 2), memory_format=CONTIGUOUS) for each in (q, k, v))
        job = _job(q, k, v, ctx.causal)
        job.dy_row, job.dy_head, job.dy_step = dy.stride()[:3]
        job.mask, job.weights, job.dy = map(pointer, (seen, weights, dy))
        job.dq, job.dk, job.dv = map(pointer, (dq, dk, dv))
        native.call("weft_attend_back", job)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2), None, None, None


CONTIGUOUS = torch.contiguous_format


def _rows(x: Tensor) -> Tensor:
    """x with its features side by side."""
    return x if x.stride(3) == 1 else x.contiguous()


def _job(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> native.Attend:
    rows, heads, queries, size = q.shape
    strides = [step for each in (q, k, v) for step in each.stride()[:3]]
    return native.Attend(
        rows, heads, queries, k.shape[2], size, native.slabs(rows), causal, *strides, 0, 0, 0, k.shape[2],
        *map(pointer, (q, k, v)),
    )  # fmt: skip
