"""A10, where a word stands: sinusoidal and learned position encodings, added to the embeddings."""

import math

import torch
from torch import Tensor, nn

from weft.errors import ShapeError


def sinusoid(
    positions: Tensor, size: int, base: float = 10000.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(pos / base^(2i/d)).

    Args:
        positions: [..] whole numbers from 0.
        size: d.
        base: n of the formula.
        dtype: of the angles and of the result; an angle of 1000 is off by 1e-4 in float32.

    Returns:
        [.., d].

    Source: Vaswani et al. 2017, section 3.5.

    Example:
        >>> [round(v, 2) for v in sinusoid(torch.tensor(3), 4, base=100.0).tolist()]
        [0.14, -0.99, 0.3, 0.96]
    """
    half = torch.arange((size + 1) // 2, device=positions.device, dtype=dtype)
    angle = positions.to(dtype)[..., None] * torch.exp(half * (-2 * math.log(base) / size))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :size]


class Sinusoidal(nn.Module):
    """Adds `sinusoid` to [B, T, D]; nothing to learn, any length.

    Args:
        size: D.
        base: n of the formula.
    """

    def __init__(self, size: int, *, base: float = 10000.0) -> None:
        super().__init__()
        self.size = size
        self.base = base

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [B, T, D], positions [T] or [B, T]."""
        dtype = torch.promote_types(x.dtype, torch.float32)
        return x + sinusoid(positions, self.size, self.base, dtype=dtype).to(x.dtype)


class Learned(nn.Module):
    """Adds a learned vector for each position up to a limit.

    Args:
        size: D.
        max_length: how many positions there are.

    Raises:
        ShapeError: a position beyond the limit.
    """

    def __init__(self, size: int, *, max_length: int = 1024) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, size)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [B, T, D], positions [T] or [B, T]."""
        if x.shape[1] and int(positions.max()) >= self.table.num_embeddings:
            raise ShapeError(
                f"position {int(positions.max())} asked for, {self.table.num_embeddings} were learned; "
                "shorten the text, train with a larger max_length or use sinusoidal positions"
            )
        return x + self.table(positions)
