"""A short causal convolution of each feature over the last steps, before a recurrence (C13).

Read next: cells/gated_delta.py and cells/ssd.py, which use it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError


class ShortConvolution(nn.Module):
    """y_t = silu(b + sum_j w_j x_{t - width + j}), j = 1 .. width, for each feature.

    Args:
        size: D, number of features.
        width: number of steps that y_t reads; 1 leaves only silu(x_t).
        bias: whether there is a b.

    Raises:
        ConfigError: a width below 1.

    Source: Gu & Dao 2023, "Mamba", section 3.4.

    Example:
        >>> import torch
        >>> short = ShortConvolution(3, 4)
        >>> x = torch.zeros(2, 7, 3)
        >>> y, after = short(x, short.start(x))
        >>> y.shape, after[0][:, -1].shape
        (torch.Size([2, 7, 3]), torch.Size([2, 3, 3]))
    """

    def __init__(self, size: int, width: int, *, bias: bool = True) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(f"convolution: expected a width of at least 1 (none), got {width}")
        self.size = size
        self.width = width
        if width > 1:
            bound = width**-0.5
            self.weight = nn.Parameter(torch.empty(width, size).uniform_(-bound, bound))
            self.bias = nn.Parameter(torch.zeros(size)) if bias else None

    def start(self, like: Tensor) -> tuple[Tensor, ...]:
        """The last width - 1 inputs, zeros [B, width - 1, D], oldest first; nothing for a width of 1."""
        if self.width == 1:
            return ()
        return (like.new_zeros(like.shape[0], self.width - 1, self.size),)

    def forward(self, x: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """All steps.

        Args:
            x: [B, T, D].
            before: from `start`, or after an earlier step.

        Returns:
            y [B, T, D], and the last width - 1 inputs after each step, [B, T, width - 1, D].
        """
        if self.width == 1:
            return F.silu(x), ()
        steps = x.shape[1]
        seen = torch.cat([before[0].to(x.dtype), x], 1)
        weight = self.weight.to(x.dtype)
        y = seen[:, :steps] * weight[0]
        for j in range(1, self.width):
            y = torch.addcmul(y, seen[:, j : j + steps], weight[j])
        if self.bias is not None:
            y = y + self.bias.to(x.dtype)
        return F.silu(y), (seen.unfold(1, self.width - 1, 1)[:, 1:].mT,)
