"""RetNet's retention, a matrix per head that decays at a fixed rate. Read next: gla.py."""

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.cells.initial import GateNorm
from weft.nn.cells.matrix import Extra, MatrixCell, last_of
from weft.nn.ops import Decayed, Linear
from weft.setting_types import Count, Size


class Retention(MatrixCell):
    """S_t = g S_{t-1} + k_t v_t^T, o_t = S_t^T q_t, y_t = W_o (swish(W_g x_t) * norm(o_t)).

    q_t = R_t W_q x_t, k_t = R_t W_k x_t / sqrt(K), v_t = W_v x_t, with R_t the rotation of pairs of features
    by t theta. The i-th head, from 0, forgets by g = 1 - 2^(-5 - i).

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.

    The state is (y, S, t); the norm is a layer norm of each head.
    Source: Sun et al. 2023, "Retentive network: a successor to Transformer for large language models",
    equations 6 and 8. There V = 2 K.

    Example:
        >>> import torch
        >>> cell = Retention(3, 8)
        >>> y, (last, S, t) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, S.shape
        (torch.Size([2, 7, 8]), torch.Size([2, 4, 2, 2]))
    """

    def __init__(
        self, in_size: int, size: int, *, num_heads: Count = 4, key_size: Size = 0, value_size: Size = 0
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        self.sizes = [num_heads * self.key_size] * 2 + [num_heads * self.value_size] * 2
        self.project = Linear(in_size, sum(self.sizes), bias=False)
        self.norm = GateNorm(self.value_size, gates=num_heads)
        self.out = Linear(num_heads * self.value_size, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """(t,), the number of steps read, [B, 1]; in float32 at least, as bfloat16 counts only to 256."""
        return (like.new_zeros(like.shape[0], 1, dtype=torch.promote_types(like.dtype, torch.float32)),)

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Decayed, Extra, Extra]:
        """Projections, rotated by their positions."""
        q, k, v, gate = self.project(x).split(self.sizes, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in (q, k, v))
        wide = before[0].dtype
        t = before[0] + torch.arange(1, x.shape[1] + 1, dtype=wide, device=x.device)  # [B, T]
        q, k = _rotated(q, t), _rotated(k, t) / self.key_size**0.5
        rates = -5.0 - torch.arange(self.heads, dtype=wide, device=x.device)
        decay = torch.log1p(-rates.exp2()).expand(*x.shape[:2], -1)[..., None]
        return Decayed(q, k, v, decay), (last_of(t[..., None], before[0], mask),), (gate,)

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """Norm of each head, gate, projection."""
        return self.out(F.silu(rest[0]) * self.norm(o.flatten(-2)))


def _rotated(q: Tensor, t: Tensor) -> Tensor:
    """Pairs of features of q [B, T, H, K] turned by t 10000^(-2 i / K), t [B, T]; an odd last one stays."""
    pairs = q.shape[-1] // 2
    rates = 1e4 ** (-torch.arange(pairs, dtype=t.dtype, device=t.device) / max(1, pairs))
    angles = (t[..., None] * rates)[:, :, None]
    cos, sin = angles.cos(), angles.sin()
    first, second, rest = q[..., :pairs], q[..., pairs : 2 * pairs], q[..., 2 * pairs :]
    return torch.cat([first * cos - second * sin, first * sin + second * cos, rest], -1)
