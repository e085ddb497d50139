"""w^T tanh(q + k) for every query and key: the energies of additive attention.

native   one pass of compiled code, float32 on the CPU (bfloat16 is cast to it, its tanh takes 5 times
         as long); the backward pass recomputes the hidden layer [B, T, S, A] instead of keeping it
torch    the sum, its tanh and a product in torch operations

Nothing is measured: compiled code does less work. Read next: ../../scores.py (Additive), which calls it.
"""

from typing import Any

import torch
from torch import Tensor

from weft import native
from weft.native import pointer
from weft.nn.kernels.choice import Way, fused, pick, why_not_native
from weft.nn.kernels.linear import linear


def additive(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """Energies [B, T, S].

    Args:
        query: [B, T, A]; keys: [B, S, A]; weight: [1, A].
    """
    given = query, keys, weight
    return pick("additive attention", WAYS, given, asked=fused()).run(*given)


def by_torch(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """`additive` in torch operations."""
    hidden = (query[:, :, None] + keys[:, None]).tanh_()  # [B, T, S, A]
    return linear(hidden, weight).squeeze(-1)


def _native(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = _Energies.apply(query.float(), keys.float(), weight.float())
    return found.to(query.dtype)


def _why_not(query: Tensor, keys: Tensor, weight: Tensor) -> str:
    if any(tensor.dtype not in WIDENED for tensor in (query, keys, weight)):
        return "compiled code takes float32 and bfloat16"
    return why_not_native(query, "energies")


WIDENED = (torch.float32, torch.bfloat16)
WAYS = Way("native", _native, _why_not), Way("torch", by_torch, plain=True)


class _Energies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        query, weight = query.contiguous(), weight.contiguous()
        keys = keys if keys.stride(2) == 1 else keys.contiguous()
        energy = query.new_empty(*query.shape[:2], keys.shape[1])
        job = _job(query, keys, weight, energy)
        job.slabs = native.slabs(energy.shape[0] * energy.shape[1])
        native.call("weft_energies", job)
        ctx.save_for_backward(query, keys, weight)
        return energy

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        query, keys, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return torch.autograd.grad(
                by_torch(query, keys, weight), (query, keys, weight), grad, create_graph=True
            )
        grad = grad.contiguous()
        job = _job(query, keys, weight, grad)
        dquery, dkeys = torch.zeros_like(query), query.new_zeros(keys.shape)
        dweight = weight.new_zeros(job.slabs, weight.shape[1])
        job.dquery, job.dkeys, job.dweight = map(pointer, (dquery, dkeys, dweight))
        native.call("weft_energies_back", job)
        return dquery, dkeys, dweight.sum(0, keepdim=True)


def _job(query: Tensor, keys: Tensor, weight: Tensor, energy: Tensor) -> native.Energies:
    (sources, queries, size), places = query.shape, keys.shape[1]
    return native.Energies(
        sources, queries, places, size, keys.stride(0), keys.stride(1),
        native.slabs(sources), *map(pointer, (query, keys, weight, energy)),
    )  # fmt: skip
