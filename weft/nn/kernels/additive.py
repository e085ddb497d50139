"""Additive attention: energies w^T tanh(q + k), and as a whole with softmax and the weighted sum of values.

`look` is the whole, in one pass of compiled code, float32 on the CPU; `additive` has the energies alone, for
probes and sparse weights, also with bfloat16 cast to float32, whose tanh takes 5 times as long. The backward
pass recomputes the hidden layer [B, T, S, A] instead of keeping it. Their plain twins are torch operations.
Compiled code does less work, so it is always the first way.

A decoder whose steps look one by one shares e^2k of the keys, and the gradients of keys and values, among
them (linear.py). Read next: ../scores.py and ../attention.py, which call them; ../../native/energies.cpp.
"""

from typing import Any

import torch
from torch import Tensor

from weft import native
from weft.native import dense, jobs, pointer
from weft.nn.kernels.choice import compiles
from weft.nn.kernels.linear import Products, Shared, Sums, linear, shared
from weft.nn.kernels.twin import twin_gradients


def additive(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """Energies [B, T, S] of queries [B, T, A], keys [B, S, A] and a weight [1, A]."""
    run = _native if compiles("additive", query, keys, weight) else by_torch
    return run(query, keys, weight)


def by_torch(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """`additive` in torch operations."""
    hidden = (query[:, :, None] + keys[:, None]).tanh_()  # [B, T, S, A]
    return linear(hidden, weight).squeeze(-1)


def _native(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = _Energies.apply(
        query.float().contiguous(), dense(keys.float()), weight.float().contiguous()
    )
    return found.to(query.dtype)


class _Energies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        energy = query.new_empty(*query.shape[:2], keys.shape[1])
        job = _job(query, keys, weight, energy)
        job.slabs = native.slabs(energy.shape[0] * energy.shape[1])
        native.call("weft_energies", job)
        ctx.save_for_backward(query, keys, weight)
        return energy

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        query, keys, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return twin_gradients(by_torch, (query, keys, weight), (grad,))
        grad = grad.contiguous()
        job = _job(query, keys, weight, grad)
        dquery, dkeys = torch.zeros_like(query), query.new_zeros(keys.shape)
        dweight = weight.new_zeros(job.slabs, weight.shape[1])
        job.dquery, job.dkeys, job.dweight = map(pointer, (dquery, dkeys, dweight))
        native.call("weft_energies_back", job)
        return dquery, dkeys, dweight.sum(0, keepdim=True)


def _job(query: Tensor, keys: Tensor, weight: Tensor, energy: Tensor) -> jobs.Energies:
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
            twin = lambda q, k, w, v: _mixed(by_torch(q, k, w), v, mask)  # noqa: E731
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
