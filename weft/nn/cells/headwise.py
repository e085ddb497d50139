"""A linear map by heads: a block-diagonal matrix."""

import math

import torch
from torch import Tensor, nn

from weft.errors import ConfigError


class Headwise(nn.Module):
    """y = W x + b with W block-diagonal: each of the heads maps its own features.

    Args:
        size: features of the input and, for each of the outputs, of the output.
        num_heads: number of blocks.
        outputs: number of stacked maps, as the gates of a cell.
        bias: whether there is b.

    Attributes:
        weight: [G, heads, K, K], K = size / num_heads; the last axis is the input's.
        bias: [G size] or None.

    Raises:
        ConfigError: the heads do not divide the size.

    Example:
        >>> import torch
        >>> Headwise(6, 2, outputs=4)(torch.zeros(3, 6)).shape
        torch.Size([3, 24])
    """

    bias: nn.Parameter | None

    def __init__(self, size: int, num_heads: int, *, outputs: int = 1, bias: bool = True) -> None:
        super().__init__()
        if num_heads < 1 or size % num_heads:
            raise ConfigError(f"num_heads: expected a divisor of the size {size}, got {num_heads}")
        width = size // num_heads
        self.weight = nn.Parameter(torch.randn(outputs, num_heads, width, width) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(outputs * size)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """[.., size] to [.., G size]."""
        apart = x.unflatten(-1, (self.weight.shape[1], -1))
        y = torch.einsum("...hi,ghoi->...gho", apart, self.weight).flatten(-3)
        return y if self.bias is None else y + self.bias
