"""The product of a short convolution of each feature: shifted copies of the input times a weight each.

torch differentiates the sum of the shifts through one zero-filled copy of the input per shift, which took
more than twice as long as adding the shifts up in place. Read next: ../cells/convolution.py.
"""

from typing import Any

import torch
from torch import Tensor

from weft.probe import traced


def depthwise(seen: Tensor, weight: Tensor) -> Tensor:
    """sum_k w_k x_{t + k}.

    Args:
        seen: x, [B, T + K - 1, D].
        weight: [K, D].

    Returns:
        [B, T, D].
    """
    if traced() or not torch.is_grad_enabled():
        return _shifts(seen, weight)
    y: Tensor = _Depthwise.apply(seen, weight)
    return y


def _shifts(seen: Tensor, weight: Tensor) -> Tensor:
    steps = seen.shape[1] - len(weight) + 1
    y = seen[:, :steps] * weight[0]
    for late in range(1, len(weight)):
        y = torch.addcmul(y, seen[:, late : late + steps], weight[late])
    return y


class _Depthwise(torch.autograd.Function):
    """`_shifts` with gradients added up in place; it can be differentiated twice."""

    @staticmethod
    def forward(ctx: Any, seen: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(seen, weight)
        return _shifts(seen, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        seen, weight = ctx.saved_tensors
        steps = grad.shape[1]
        read, weights = torch.zeros_like(seen), []
        for late in range(len(weight)):
            read[:, late : late + steps].addcmul_(grad, weight[late])
            weights.append((grad * seen[:, late : late + steps]).sum((0, 1)))
        return read, torch.stack(weights)
