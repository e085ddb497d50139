"""Multi-head scaled dot-product attention, by the first of three ways that can compute it (`WAYS`).

native    compiled code for short sequences, training in float32 on the CPU   short.py
formula   `plain_attention`, where it is faster than the fused operation
fused     torch's own operation

All agree (tests/nn). On the CPU the fused backward pass in bfloat16
took 43 ms for 125 sentences of 20 tokens and 4 heads of 64, and the formula 12 ms. The formula was faster up
to about 200 tokens. In float32, and without gradients, the fused operation was always faster.
Read next: short.py.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from weft import masks
from weft.nn.kernels.attention.short import short_attention, why_not_short
from weft.nn.kernels.choice import Way, pick
from weft.nn.kernels.dropout import dropout as drop

FUSED_FROM = 384 * 384  # query times key positions; between 200 and 512 tokens the two were equally fast


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
    """softmax(M + Q K^T / sqrt(d_k)) V for every head.

    Args:
        q: [B, H, T, K]; k, v: [B, H, S, K].
        mask: bool, broadcastable to [B, H, T, S], True = may attend; None for everything.
        bias: added to the energies, broadcastable to [B, H, T, S]; None for none.
        causal: query t sees keys up to t (T = S, and no mask).
        dropout: share of attention weights set to zero.

    Returns:
        [B, H, T, K]. A query that may attend to nothing gets zeros (fused) or the mean of v (formula), never
        NaN.
    """
    way = pick("attention", WAYS, (q, k, v, mask, bias, dropout))
    return way.run(q, k, v, mask, bias=bias, causal=causal, dropout=dropout)


def _native(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    return short_attention(q, k, v, mask, causal=causal, twin=plain_attention)


def _fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    if bias is not None:
        if causal:
            mask, causal = masks.causal(q.shape[2], k.shape[2], q.device), False
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, torch.finfo(q.dtype).min)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout)


def prefers_plain(q: Tensor, k: Tensor, dropout: float) -> bool:
    """Whether the formula is faster: short sequences, training on the CPU, in bfloat16 or with dropout."""
    if not (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)) or q.device.type != "cpu":
        return False
    return (q.dtype == torch.bfloat16 or dropout > 0) and q.shape[2] * k.shape[2] < FUSED_FROM


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


def _why_not_plain(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> str:
    return "" if prefers_plain(q, k, dropout) else "the fused operation is faster"


WAYS = (
    Way("native", _native, why_not_short),
    Way("formula", plain_attention, _why_not_plain, plain=True),
    Way("fused", _fused, plain=True),
)
