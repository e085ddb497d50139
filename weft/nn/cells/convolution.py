"""A short causal convolution of each feature, which cells and blocks put before the recurrence."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.probe import traced


class ShortConvolution(nn.Module):
    """y_t = b + sum_k w_k x_{t - K + 1 + k} for each feature, with the K - 1 inputs before t as state.

    Args:
        size: D, features.
        steps: K.
        bias: whether there is b.

    Attributes:
        weight: [K, D], the newest input last.

    Raises:
        ConfigError: K is below 2.

    Example:
        >>> import torch
        >>> convolution = ShortConvolution(3, 4)
        >>> y, window = convolution(torch.zeros(2, 7, 3), convolution.start(torch.zeros(2, 3)), None)
        >>> y.shape, window.shape
        (torch.Size([2, 7, 3]), torch.Size([2, 9]))
    """

    bias: nn.Parameter | None

    def __init__(self, size: int, steps: int, *, bias: bool = True) -> None:
        super().__init__()
        if steps < 2:
            raise ConfigError(f"convolution: expected at least 2 steps, or 0 for none, got {steps}")
        self.size = size
        self.steps = steps
        self.weight = nn.Parameter(torch.empty(steps, size).uniform_(-1, 1) / math.sqrt(steps))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None

    def start(self, like: Tensor) -> Tensor:
        """The inputs before the first, zeros [B, (K - 1) D]."""
        return like.new_zeros(like.shape[0], (self.steps - 1) * self.size)

    def step(self, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        """One step: x [B, D] and the window [B, (K - 1) D] to y [B, D] and the next window."""
        seen = torch.cat([window, x.to(window.dtype)], -1)
        y = (seen.unflatten(-1, (self.steps, self.size)) * self.weight).sum(1)
        return y if self.bias is None else y + self.bias, seen[:, self.size :]

    def forward(self, x: Tensor, window: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """All steps.

        Args:
            x: [B, T, D].
            window: [B, (K - 1) D], the inputs before x.
            mask: [B, T] bool, real positions first, or None.

        Returns:
            y [B, T, D], and the window after the last real position.
        """
        before = self.steps - 1
        seen = torch.cat([window.unflatten(-1, (before, self.size)), x.to(window.dtype)], 1)
        run = _shifts if traced() or not torch.is_grad_enabled() else _Depthwise.apply
        y = run(seen, self.weight)
        return y if self.bias is None else y + self.bias, last_inputs(seen, before, mask).flatten(1)


def last_inputs(seen: Tensor, before: int, mask: Tensor | None) -> Tensor:
    """The last `before` inputs up to each row's last real position: [B, before + T, D] to [B, before, D]."""
    if mask is None:
        return seen[:, seen.shape[1] - before :]
    index = mask.sum(1)[:, None] + torch.arange(before, device=seen.device)
    return seen.gather(1, index[..., None].expand(-1, -1, seen.shape[2]))


def _shifts(seen: Tensor, weight: Tensor) -> Tensor:
    """sum_k w_k x_{t + k} of x [B, T + K - 1, D] and w [K, D], [B, T, D]."""
    steps = seen.shape[1] - len(weight) + 1
    y = seen[:, :steps] * weight[0]
    for late in range(1, len(weight)):
        y = torch.addcmul(y, seen[:, late : late + steps], weight[late])
    return y


class _Depthwise(torch.autograd.Function):
    """`_shifts` with gradients added up in place; it can be differentiated twice.

    torch differentiates it through one zero-filled copy of the input per shift, in more than twice the time.
    """

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
