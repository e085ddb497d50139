"""Dropout with 16 random bits per element.

torch's dropout on the CPU draws one number at a time and takes 18 ms for 2.5 M elements. Here one 64-bit draw
serves four elements, and the backward pass is one product. The plain twin is torch.nn.functional.dropout,
which is also used on other devices and under torch.compile. (torch.compile cannot
pass a generator in; it uses torch's own, which restarts for each batch.) The two draw different numbers.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.randomness import for_rows, open_generator, open_rows

LEVELS = 1 << 16


def dropout(x: Tensor, share: float, *, training: bool) -> Tensor:
    """Set a share of the elements to zero and scale the others up, so that the mean is unchanged.

    Args:
        x: any shape.
        share: 0 to 1; on the CPU in steps of 1/65536.
        training: False returns x itself.
    """
    if not training or share <= 0.0:
        return x
    if torch.compiler.is_compiling():
        return F.dropout(x, share)
    if x.device.type != "cpu" or share >= 1.0:
        if open_rows() is None:
            return F.dropout(x, share)
        return x * for_rows(lambda shape: F.dropout(x.new_ones(shape), share), x.shape)
    dropped = min(LEVELS - 1, max(1, round(share * LEVELS)))
    kept = for_rows(lambda shape: _kept(shape, dropped), x.shape)
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))


def _kept(shape: tuple[int, ...], dropped: int) -> Tensor:
    """Bool mask of the elements to keep; each is dropped with probability `dropped` / 65536."""
    count = math.prod(shape)
    bits = torch.empty((count + 3) // 4, dtype=torch.int64)
    bits = bits.random_(-(2**63), None, generator=open_generator()).view(torch.int16)
    return (bits[:count] >= dropped - LEVELS // 2).view(shape)


class Dropout(nn.Module):
    """`dropout` as a module.

    Args:
        share: share of the elements set to zero in training.

    Raises:
        ConfigError: the share is not between 0 and 1.
    """

    def __init__(self, share: float = 0.1) -> None:
        super().__init__()
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"dropout: expected a share between 0 and 1, got {share}")
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """Any shape."""
        return dropout(x, self.share, training=self.training)

    def extra_repr(self) -> str:
        """The settings shown by print."""
        return f"share={self.share}"
