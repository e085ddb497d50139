"""Multi-head scaled dot-product attention, by the first of three ways that can compute it.

native    compiled code for short sequences, training in float32 on the CPU
formula   `plain_attention`, where it is faster than the fused operation
fused     torch's own operation

All agree (tests/nn). On the CPU the fused backward pass in bfloat16 took 43 ms for 125 sentences of 20 tokens
and 4 heads of 64, and the formula 12 ms. The formula was faster up to about 200 tokens. In float32, and
without gradients, the fused operation was always faster. The compiled way takes one head of a row at a time
and keeps the weights [B, H, T, S] for the backward pass, as the formula does; torch's fused operation
computes them again and is made for long sequences.

Additive attention is energies w^T tanh(q + k): `look` is the whole with softmax and the weighted sum of
values, in one pass of compiled code, float32 on the CPU; `additive` has the energies alone, for probes and
sparse weights, also with bfloat16 cast to float32, whose tanh takes 5 times as long. The backward pass
recomputes the hidden layer [B, T, S, A] instead of keeping it. Their plain twins are torch operations.
Compiled code does less work, so it is always the first way. A decoder whose steps look one by one shares e^2k
of the keys, and the gradients of keys and values, among them (linear.py).
Read next: ../attention.py, which calls them; ../../native/attention.cpp, ../../native/energies.cpp.
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
from weft.nn.kernels.linear import Products, Shared, Sums, linear, shared
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


def additive(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """Energies [B, T, S] of queries [B, T, A], keys [B, S, A] and a weight [1, A]."""
    run = _energies if compiles("additive", query, keys, weight) else plain_additive
    return run(query, keys, weight)


def plain_additive(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """`additive` in torch operations."""
    hidden = (query[:, :, None] + keys[:, None]).tanh_()  # [B, T, S, A]
    return linear(hidden, weight).squeeze(-1)


def _energies(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = _Energies.apply(
        query.float().contiguous(), dense(keys.float()), weight.float().contiguous()
    )
    return found.to(query.dtype)


class _Energies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        energy = query.new_empty(*query.shape[:2], keys.shape[1])
        job = _energies_job(query, keys, weight, energy)
        job.slabs = native.slabs(energy.shape[0] * energy.shape[1])
        native.call("weft_energies", job)
        ctx.save_for_backward(query, keys, weight)
        return energy

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        query, keys, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return twin_gradients(plain_additive, (query, keys, weight), (grad,))
        grad = grad.contiguous()
        job = _energies_job(query, keys, weight, grad)
        dquery, dkeys = torch.zeros_like(query), query.new_zeros(keys.shape)
        dweight = weight.new_zeros(job.slabs, weight.shape[1])
        job.dquery, job.dkeys, job.dweight = map(pointer, (dquery, dkeys, dweight))
        native.call("weft_energies_back", job)
        return dquery, dkeys, dweight.sum(0, keepdim=True)


def _energies_job(query: Tensor, keys: Tensor, weight: Tensor, energy: Tensor) -> jobs.Energies:
    (sources, queries, size), places = query.shape, keys.shape[1]
    return jobs.Energies(
        sources, queries, places, size, keys.stride(0), keys.stride(1),
        native.slabs(sources), *map(pointer, (query, keys, weight, energy)),
    )  # fmt: skip


RANGE = 20.0  # as in energies.cpp


def look(query: Tensor, keys: Tensor, weight: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Contexts [B, Q, D] of queries [B, Q, A], keys [B, S, A], values [B, S, D] and a mask [B, S] bool."""
    if compiles("look", query, keys, weight, values):
        return _look_native(query, keys, weight, values, mask)
    return _mixed(additive(query, keys, weight), values, mask)


def _mixed(energy: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    weights = energy.masked_fill(~mask[:, None], torch.finfo(energy.dtype).min).softmax(-1)
    return weights.to(values.dtype) @ values


def _look_native(query: Tensor, keys: Tensor, weight: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    held_keys, held_values = shared(keys, None, _Keys), shared(values, None, _sums)
    if held_keys is not None:
        powers = held_keys.sums.made("powers", lambda: _powers(keys))
    else:
        powers = _powers(keys) if query.shape[1] > 1 else None
    keys = keys if held_keys is None else held_keys.tensor
    values = values if held_values is None else held_values.tensor
    given = query.contiguous(), dense(keys), weight.contiguous(), dense(values), mask.contiguous()
    return _Look.apply(*given, powers, held_keys, held_values)


def _powers(keys: Tensor) -> Tensor | None:
    """e^2k, or None where it could overflow."""
    keys = keys.detach()
    return keys.mul(2).exp_() if float(keys.abs().max()) <= RANGE else None


def _values_gradient(weights: Tensor, dcontext: Tensor) -> Tensor:
    return weights.mT @ dcontext


def _sums() -> Products:
    return Products(_values_gradient)


class _Keys(Sums):
    """Gradients of keys."""

    def begin(self) -> None:
        self._grad: Tensor | None = None

    def into(self, keys: Tensor) -> Tensor:
        """The gradient so far, which a step adds to."""
        self.enter()
        if self._grad is None:
            self._grad = keys.new_zeros(keys.shape)
        return self._grad

    def total(self) -> tuple[Tensor | None, Tensor | None]:
        return self._grad, None


class _Look(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        query: Tensor,
        keys: Tensor,
        weight: Tensor,
        values: Tensor,
        mask: Tensor,
        powers: Tensor | None,
        held_keys: Shared[_Keys] | None,
        held_values: Shared[Products] | None,
    ) -> Tensor:
        weights = query.new_empty(*query.shape[:2], keys.shape[1])
        context = query.new_empty(*query.shape[:2], values.shape[2])
        job, _ = _look_job(query, keys, powers, weight, values, mask, weights, context)
        job.slabs = native.slabs(query.shape[0] * query.shape[1])
        native.call("weft_look", job)
        ctx.save_for_backward(query, keys, weight, values, mask, weights, powers)
        ctx.keys = None if held_keys is None else held_keys.sums
        ctx.values = None if held_values is None else held_values.sums
        return context

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        query, keys, weight, values, mask, weights, powers = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            twin = lambda q, k, w, v: _mixed(plain_additive(q, k, w), v, mask)  # noqa: E731
            return *twin_gradients(twin, (query, keys, weight, values), (grad,)), *(None,) * 4
        grad = grad.contiguous()
        dquery = torch.zeros_like(query)
        dkeys = query.new_zeros(keys.shape) if ctx.keys is None else ctx.keys.into(keys)
        job, _ = _look_job(query, keys, powers, weight, values, mask, weights, grad)
        dweight = weight.new_zeros(job.slabs, weight.shape[1])
        job.dquery, job.dkeys, job.dweight = map(pointer, (dquery, dkeys, dweight))
        native.call("weft_look_back", job)
        dvalues = None
        if ctx.values is not None:
            ctx.values.add(weights, grad)
        elif ctx.needs_input_grad[3]:
            dvalues = _values_gradient(weights, grad)
        dkeys = dkeys if ctx.keys is None else None
        return dquery, dkeys, dweight.sum(0, keepdim=True), dvalues, *(None,) * 4


def _look_job(
    query: Tensor,
    keys: Tensor,
    powers: Tensor | None,
    weight: Tensor,
    values: Tensor,
    mask: Tensor,
    weights: Tensor,
    context: Tensor,
) -> tuple[jobs.Look, Tensor]:
    """The arguments for both passes, and a buffer that they point to."""
    (sources, queries, size), (places, width) = query.shape, values.shape[1:]
    slabs = native.slabs(sources * queries)
    room = query.new_empty(slabs, size + places)
    return jobs.Look(
        sources, queries, places, size, width, keys.stride(0), keys.stride(1), values.stride(0),
        values.stride(1), native.slabs(sources),
        *map(pointer, (query, keys, powers, weight, values, mask, weights, context)),
        None, None, None, pointer(room),
    ), room  # fmt: skip
