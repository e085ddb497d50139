"""Softmax and cross-entropy over a large vocabulary, together with the output product.

The logits [N, V] are the largest tensor of a sequence model. Here a few rows of them exist at a time:
their loss and their gradient are made at once, in the forward pass, and only the gradients of h, W and
b are kept. The plain twin is `plain_cross_entropy`, which the tests compare it with.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.kernels.linear import linear

ELEMENTS = 1 << 20  # of the logits that exist at a time; smaller and larger were slower on two CPUs


def cross_entropy(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Sum over rows of -(1 - e) log p(target) - e/V sum_v log p(v), p = softmax(W h + b).

    Args:
        h: [N, D]; weight: [V, D]; bias: [V] or None; target: [N] int64.
        smoothing: e, the share of probability spread over the vocabulary (Szegedy 2016, section 7).

    Returns:
        The smoothed sum [], and the plain sum -log p(target) [] (without gradient), in nats.
    """
    device = h.device.type
    if torch.is_autocast_enabled(device):
        h = h.to(torch.get_autocast_dtype(device))
    grads = torch.is_grad_enabled() and (h.requires_grad or weight.requires_grad)
    return _CrossEntropy.apply(h, weight, bias, target, smoothing, grads)


def plain_cross_entropy(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The same by torch's own functions, all logits at once."""
    logits = linear(h, weight, bias)
    total = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    return total, F.cross_entropy(logits.detach(), target, reduction="sum")


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        grads: bool,
    ) -> tuple[Tensor, Tensor]:
        size = len(weight)
        w = weight.to(h.dtype)
        wide = torch.promote_types(h.dtype, torch.float32)
        dh = torch.empty_like(h) if grads else None
        dw = torch.zeros(weight.shape, dtype=wide, device=h.device) if grads else None
        db = torch.zeros(size, dtype=wide, device=h.device) if grads and bias is not None else None
        total = h.new_zeros((), dtype=wide)
        plain = h.new_zeros((), dtype=wide)
        rows = max(1, ELEMENTS // size)
        with torch.autocast(h.device.type, enabled=False):
            for at in range(0, len(h), rows):
                part, wanted = h[at : at + rows], target[at : at + rows, None]
                logits = linear(part, w, None if bias is None else bias.to(h.dtype))
                logp = torch.log_softmax(logits, -1, dtype=wide)
                nll = -logp.gather(1, wanted).sum()
                plain += nll
                total += (1 - smoothing) * nll
                if smoothing:
                    total -= smoothing / size * logp.sum()
                if dh is None or dw is None:
                    continue
                grad = logp.exp_()
                if smoothing:
                    grad -= smoothing / size
                grad.scatter_add_(1, wanted, grad.new_full(wanted.shape, smoothing - 1))
                if db is not None:
                    db += grad.sum(0)
                grad = grad.to(h.dtype)
                dh[at : at + rows] = linear(grad, w.mT)
                dw += linear(grad.mT, part.mT)
        ctx.save_for_backward(*(g for g in (dh, dw, db) if g is not None))
        ctx.mark_non_differentiable(plain)
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        return total, plain

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        dh, dw, *db = ctx.saved_tensors
        weight_dtype, bias_dtype = ctx.dtypes
        return (
            dh * grad.to(dh.dtype),
            (dw * grad).to(weight_dtype),
            (db[0] * grad).to(bias_dtype) if db else None,
            None,
            None,
            None,
        )
