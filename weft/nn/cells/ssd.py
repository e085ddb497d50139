"""Mamba-2's state space duality, one decay per head. Read next: rwkv7.py."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.initial import rates
from weft.nn.cells.matrix import Extra, MatrixCell
from weft.nn.norms import RMSNorm
from weft.nn.ops import Decayed, Linear
from weft.setting_types import Count, Size


class SSD(MatrixCell):
    """S_t = exp(-A d_t) S_{t-1} + d_t B_t u_t^T, o_t = S_t^T C_t + D u_t, y_t = W_o norm(o_t * swish(z_t)).

    u (one vector per head), B and C (shared by the heads) are projections of x, then a convolution with
    swish; z_t = W_z x_t and d_t = softplus(W_d x_t + b_d).

    Args:
        in_size: features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: features of B and C, the paper's N; 0 = size / num_heads, rounded up.
        value_size: features of u, the paper's P; 0 = size / num_heads, rounded up. Mamba-2 has
            num_heads * value_size = 2 H.
        convolution: number of steps that the convolution reads, at least 2.

    The state is (y, S, last inputs of the convolution). The norm is one over all heads.
    Source: Dao & Gu 2024, "Transformers are SSMs", sections 2.2 and 7.

    Example:
        >>> import torch
        >>> cell = SSD(3, 8)
        >>> y, (last, S, inputs) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, S.shape
        (torch.Size([2, 7, 8]), torch.Size([2, 4, 2, 2]))
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_heads: Count = 4,
        key_size: Size = 0,
        value_size: Size = 0,
        convolution: int = 4,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        values = num_heads * self.value_size
        self.sizes = [values, self.key_size, self.key_size]
        self.project = Linear(in_size, values + sum(self.sizes) + num_heads, bias=False)  # z, u, B, C, d
        self.short = ShortConvolution(sum(self.sizes), convolution)
        self.log_rate, self.bias = (nn.Parameter(part) for part in rates(num_heads))
        self.skip = nn.Parameter(torch.ones(num_heads))
        self.norm = RMSNorm(values, eps=1e-5)
        self.out = Linear(values, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """The last inputs of the convolution."""
        return (self.short.start(like),)

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Decayed, Extra, Extra]:
        """Projections, convolution, step sizes."""
        z, mixed, d = self.project(x).split([self.sizes[0], sum(self.sizes), self.heads], -1)
        mixed, window = self.short(mixed, before[0], mask)
        u, b, c = F.silu(mixed).split(self.sizes, -1)
        u = u.unflatten(-1, (self.heads, -1))
        b, c = (part[:, :, None].expand(-1, -1, self.heads, -1) for part in (b, c))
        d = F.softplus(d + self.bias)
        decay = (-self.log_rate.exp() * d)[..., None]
        return Decayed(c, b, d[..., None] * u, decay), (window,), (z, u)

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """The skip, gate, norm, projection."""
        z, u = rest
        o = (o + self.skip[:, None] * u).flatten(-2)
        return self.out(self.norm(o * F.silu(z)))
