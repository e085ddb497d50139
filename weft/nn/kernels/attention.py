"""Multi-head scaled dot-product attention, by the first of three ways that can compute it.

native    compiled code for short sequences, training in float32 on the CPU
formula   `plain_attention`, where it is faster than the fused operation
fused     torch's own operation

All agree (tests/nn). On the CPU the fused backward pass in bfloat16 took 43 ms for 125 sentences of 20 tokens
and 4 heads of 64, and the formula 12 ms. The formula was faster up to about 200 tokens. In float32, and
without gradients, the fused operation was always faster. The compiled way takes one head of a row at a time
and keeps the weights [B, H, T, S] for the backward pass, as the formula does; torch's fused operation
computes them again and is made for long sequences. Read next: additive.py; ../../native/attention.cpp.
"""

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from weft import masks, native
from weft.native import dense, jobs, pointer
from weft.nn.kernels import choice
from weft.nn.kernels.choice import compiles
from weft.nn.kernels.dropout import dropout as drop
from weft.nn.kernels.twin import twin_gradients


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """softmax(M + Q K^T / sqrt(d_k)) V for q [B, H, T, K], k and v [B, H, S, K]; gives [B, H, T, K].

    Mask (True = may attend) and bias broadcast to [B, H, T, S]. A query that may attend to nothing gets zeros
    (fused) or the mean of v (formula), never NaN.
    """
    if suits_short(q, k, v, mask, bias, dropout):
        return _Short.apply(dense(q), dense(k), dense(v), mask, causal)  # type: ignore[no-any-return]
    if prefers_plain(q, k, dropout):
        return plain_attention(q, k, v, mask, bias=bias, causal=causal, dropout=dropout)
    if bias is not None:
        if causal:
            mask, causal = masks.causal(q.shape[2], k.shape[2], q.device), False
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, torch.finfo(q.dtype).min)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout)


def prefers_plain(q: Tensor, k: Tensor, dropout: float) -> bool:
    """Whether the formula is faster than the fused operation."""
    if not (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)) or q.device.type != "cpu":
        return False
    costly = q.dtype == torch.bfloat16 or dropout > 0
    return costly and q.shape[2] * k.shape[2] < choice.FUSED_FROM


def plain_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """`attention` by the formula."""
    weights = attention_weights(q, k, mask, bias=bias, causal=causal)
    return drop(weights, dropout, training=True).to(v.dtype) @ v


def attention_weights(
    q: Tensor, k: Tensor, mask: Tensor | None, *, bias: Tensor | None = None, causal: bool = False
) -> Tensor:
    """softmax(M + Q K^T / sqrt(d_k)), [B, H, T, S]; uniform for a query that may attend to nothing."""
    energy = (q * (1 / math.sqrt(q.shape[-1]))) @ k.mT
    if bias is not None:
        energy = energy + bias
    if causal:
        mask = masks.causal(q.shape[2], k.shape[2], q.device)
    if mask is not None:
        energy = energy.masked_fill(~mask, torch.finfo(energy.dtype).min)
    return torch.softmax(energy, -1)


LONGEST, WIDEST = 128, 64  # positions and features of a head, as in attention.cpp


def suits_short(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> bool:
    """Whether compiled code can compute this, and is faster."""
    if dropout or bias is not None or not torch.is_grad_enabled():
        return False
    if not (q.requires_grad or k.requires_grad or v.requires_grad):
        return False  # without gradients the fused operation is faster
    if max(q.shape[2], k.shape[2]) > LONGEST or q.shape[3] > WIDEST or q.shape[:2] != k.shape[:2]:
        return False
    if mask is not None and mask.shape[1:] != (1, 1, k.shape[2]):
        return False
    # the features of a head fill registers
    return compiles("attention", q, k, v) and not q.shape[3] % native.loaded("attention").width


class _Short(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        seen = None if mask is None else mask[:, 0, 0].expand(len(q), -1).contiguous()
        (rows, heads, queries, size), width = q.shape, native.loaded("attention").width
        weights = q.new_empty(rows, heads, queries, math.ceil(k.shape[2] / width) * width)
        y = q.new_empty(rows, queries, heads, size)
        job = _job(q, k, v, causal)
        job.mask, job.weights, job.y = map(pointer, (seen, weights, y))
        native.call("weft_attend", job)
        ctx.save_for_backward(q, k, v, mask, seen, weights)
        ctx.causal = causal
        return y.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, mask, seen, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            twin = partial(plain_attention, mask=mask, causal=ctx.causal)
            return *twin_gradients(twin, (q, k, v), (dy,)), None, None
        dy = dense(dy)
        dq, dk, dv = (torch.empty_like(each.transpose(1, 2), memory_format=CONTIGUOUS) for each in (q, k, v))
        job = _job(q, k, v, ctx.causal)
        job.dy_row, job.dy_head, job.dy_step = dy.stride()[:3]
        job.mask, job.weights, job.dy = map(pointer, (seen, weights, dy))
        job.dq, job.dk, job.dv = map(pointer, (dq, dk, dv))
        native.call("weft_attend_back", job)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2), None, None


CONTIGUOUS = torch.contiguous_format


def _job(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> jobs.Attend:
    rows, heads, queries, size = q.shape
    strides = [step for each in (q, k, v) for step in each.stride()[:3]]
    return jobs.Attend(
        rows, heads, queries, k.shape[2], size, native.slabs(rows), causal, *strides, 0, 0, 0, k.shape[2],
        *map(pointer, (q, k, v)),
    )  # fmt: skip
