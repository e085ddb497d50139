"""DeltaNet, which replaces the value under a key instead of adding to it. Read next: gated_delta.py."""

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.matrix import Extra, MatrixCell
from weft.nn.norms import RMSNorm
from weft.nn.ops import Linear, Replaced
from weft.setting_types import Count, Size


class Delta(MatrixCell):
    """S_t = S_{t-1} - b_t k_t (k_t^T S_{t-1} - v_t^T), o_t = S_t^T q_t, y_t = W_o norm(o_t).

    b_t = sigmoid(W_b x_t). q, k and v are projections of x, then a convolution with swish; q and k then get
    the length 1, and q is divided by sqrt(K).

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        convolution: number of steps that the convolution reads; 0 = none.
        negative: b_t is doubled, so that the state is multiplied by -1 .. 1 along k instead of 0 .. 1.

    The state is (y, S), and with a convolution its last inputs.
    Source: Schlag, Irie & Schmidhuber 2021, "Linear Transformers are secretly fast weight programmers",
    section 4.2; normalised keys, convolution and norm: Yang et al. 2024, "Parallelizing linear Transformers
    with the delta rule over sequence length", section 3.3; negative: Grazzi et al. 2025, "Unlocking
    state-tracking in linear RNNs through negative eigenvalues", section 4.

    Example:
        >>> import torch
        >>> cell = Delta(3, 8)
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
        self.project = Linear(in_size, sum(self.sizes) + num_heads, bias=False)
        self.convolution = convolution
        if convolution:
            self.short = ShortConvolution(sum(self.sizes), convolution, bias=False)
        self.norm = RMSNorm(self.value_size, eps=1e-5)
        self.out = Linear(values, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """The last inputs of the convolution."""
        return (self.short.start(like),) if self.convolution else ()

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Replaced, Extra, Extra]:
        """Projections, convolution, rate."""
        qkv, rate = self.project(x).split([sum(self.sizes), self.heads], -1)
        after: Extra = ()
        if self.convolution:
            qkv, window = self.short(qkv, before[0], mask)
            after = (window,)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in F.silu(qkv).split(self.sizes, -1))
        q, k = unit(q, self.key_size**-0.5), unit(k)
        rate = self.largest_rate * rate.sigmoid()[..., None]
        return Replaced(q, k, v, torch.zeros_like(rate), rate), after, ()


def unit(x: Tensor, length: float = 1.0) -> Tensor:
    """x [.., K] divided by its length, the square root of |x|^2 + 1e-6, times another length."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # in float16 the slope of rsqrt overflows
    return (wide * (length * torch.rsqrt(wide.square().sum(-1, keepdim=True) + 1e-6))).to(x.dtype)
