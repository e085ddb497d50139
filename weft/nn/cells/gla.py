"""Gated linear attention, a matrix per head whose rows decay by what is read. Read next: hgrn2.py."""

import torch.nn.functional as F
from torch import Tensor

from weft.nn.cells.initial import GateNorm
from weft.nn.cells.matrix import Extra, MatrixCell
from weft.nn.ops import Decayed, Linear
from weft.setting_types import Count, Size

SLOWER = 16.0  # the paper's tau: the gate is sigmoid(z)^(1 / tau), so that it starts near 1


class GLA(MatrixCell):
    """S_t = diag(a_t) S_{t-1} + k_t v_t^T, o_t = S_t^T q_t, y_t = W_o (swish(W_r x_t + b_r) * norm(o_t)).

    q_t = W_q x_t / sqrt(K), k_t = W_k x_t, v_t = W_v x_t, a_t = sigmoid(W_2 W_1 x_t + b)^(1/16).

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        rank: rows of W_1.

    The state is (y, S); the norm is a layer norm of each head.
    Source: Yang et al. 2023, "Gated linear attention Transformers with hardware-efficient training",
    section 4.4. There the keys of all heads have H / 2 features. The authors' code has a root-mean-square
    norm and no b_r.

    Example:
        >>> import torch
        >>> cell = GLA(3, 8)
        >>> y, (last, S) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
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
        rank: int = 16,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        keys, values = num_heads * self.key_size, num_heads * self.value_size
        self.sizes = [keys, keys, values, rank]
        self.project = Linear(in_size, sum(self.sizes), bias=False)
        self.gate = Linear(in_size, values)
        self.decay = Linear(rank, keys)
        self.norm = GateNorm(self.value_size, gates=num_heads)
        self.out = Linear(values, size, bias=False)

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Decayed, Extra, Extra]:
        q, k, v, low = self.project(x).split(self.sizes, -1)
        decay = F.logsigmoid(self.decay(low)) / SLOWER
        q, k, v, decay = (part.unflatten(-1, (self.heads, -1)) for part in (q, k, v, decay))
        return Decayed(q / self.key_size**0.5, k, v, decay), (), (self.gate(x),)

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """Norm of each head, gate, projection."""
        return self.out(F.silu(rest[0]) * self.norm(o.flatten(-2)))
