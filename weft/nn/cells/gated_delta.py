"""Gated DeltaNet, the delta rule with a decay. Read next: ssd.py."""

import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.delta import unit
from weft.nn.cells.initial import rates
from weft.nn.cells.matrix import Extra, MatrixCell
from weft.nn.norms import RMSNorm
from weft.nn.ops import Linear, Replaced
from weft.setting_types import Count, Size


class GatedDelta(MatrixCell):
    """S_t = a_t (S_{t-1} - b_t k_t k_t^T S_{t-1}) + b_t k_t v_t^T, o_t = S_t^T q_t.

    y_t = W_o (norm(o_t) * swish(W_z x_t)), b_t = sigmoid(W_b x_t), a_t = exp(-A softplus(W_a x_t + d)); q, k
    and v as in DeltaNet.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        convolution: number of steps that the convolution reads, at least 2.
        negative: as in DeltaNet.

    The state is (y, S, last inputs of the convolution).
    Source: Yang, Kautz & Hatamizadeh 2024, "Gated delta networks: improving Mamba2 with delta rule",
    equation 10 and section 3.4.

    Example:
        >>> import torch
        >>> cell = GatedDelta(3, 8)
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
        negative: bool = False,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        self.largest_rate = 2.0 if negative else 1.0
        keys, values = num_heads * self.key_size, num_heads * self.value_size
        self.sizes = [keys, keys, values]
        self.rest = [values, num_heads, num_heads]  # z, b, a
        self.project = Linear(in_size, sum(self.sizes + self.rest), bias=False)
        self.short = ShortConvolution(sum(self.sizes), convolution, bias=False)
        self.log_rate, self.bias = (nn.Parameter(part) for part in rates(num_heads))
        self.norm = RMSNorm(self.value_size, eps=1e-6)
        self.out = Linear(values, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """The last inputs of the convolution."""
        return (self.short.start(like),)

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Replaced, Extra, Extra]:
        """Projections, convolution, rate and decay."""
        qkv, z, b, a = self.project(x).split([sum(self.sizes), *self.rest], -1)
        qkv, window = self.short(qkv, before[0], mask)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in F.silu(qkv).split(self.sizes, -1))
        q, k = unit(q, self.key_size**-0.5), unit(k)
        rate = self.largest_rate * b.sigmoid()[..., None]
        decay = (-self.log_rate.exp() * F.softplus(a + self.bias))[..., None]
        return Replaced(q, k, v, decay, rate), (window,), (z,)

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """Norm of each head, gate, projection."""
        return self.out(self.norm(o).flatten(-2) * F.silu(rest[0]))
