"""The mLSTM of xLSTM, a matrix memory with exponential input gates. Read next: delta.py."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.cells.initial import GateNorm
from weft.nn.cells.matrix import Extra, MatrixCell, last_of
from weft.nn.ops import Decayed, Linear, MatrixRecurrence
from weft.probe import record
from weft.setting_types import Count, Size

EPSILON = 1e-6


class MLSTM(MatrixCell):
    """C_t = f_t C_{t-1} + i_t v_t k_t^T, n_t = f_t n_{t-1} + i_t k_t, h~ = C_t q_t / max(|n_t^T q_t|, 1).

    i_t = exp(i~), f_t = sigmoid(f~), one pair per head; y_t = W_y (sigmoid(W_o x_t + b_o) * norm(h~)), and
    q_t = W_q x_t, k_t = W_k x_t / sqrt(K), v_t = W_v x_t. With m_t = max(log f_t + m_{t-1}, i~), what is kept
    is C_t / exp(m_t) and n_t / exp(m_t), and the 1 becomes exp(-m_t): no number overflows.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of memories.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        forget_bias: initial value of the forget gates' bias in the last head; the first has 3.
        cap: i~ and f~ are cap * tanh(z / cap), 15 in xLSTM 7B; 0 = no bound.

    The state is (y, S, m), S [B, heads, K, V + 1] with C^T in the first V columns and n in the last, and
    m [B, heads]. The norm is a layer norm of each head.
    Source: Beck et al. 2024, "xLSTM: extended long short-term memory", equations 15 and 19 to 27; norm,
    output projection and caps: Beck et al. 2025, "xLSTM 7B".

    Example:
        >>> import torch
        >>> cell = MLSTM(3, 8)
        >>> y, (last, S, m) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, S.shape
        (torch.Size([2, 7, 8]), torch.Size([2, 4, 2, 3]))
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_heads: Count = 4,
        key_size: Size = 0,
        value_size: Size = 0,
        forget_bias: float = 6.0,
        cap: float = 0.0,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        self.columns = self.value_size + 1
        self.cap = cap
        keys, values = num_heads * self.key_size, num_heads * self.value_size
        self.sizes = [keys, keys, values]
        self.project = Linear(in_size, sum(self.sizes), bias=False)
        self.gates = Linear(in_size, values + 2 * num_heads)  # o, i~, f~
        with torch.no_grad():
            self.gates.weight[values:] = 0
            self.gates.bias[values : values + num_heads] = -10.0
            self.gates.bias[values + num_heads :] = torch.linspace(3.0, forget_bias, num_heads)
        self.norm = GateNorm(self.value_size, gates=num_heads)
        self.out = Linear(values, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """(m,), zeros [B, heads]; in float32 at least, as m changes by small steps far from 0."""
        wide = torch.promote_types(like.dtype, torch.float32)
        return (like.new_zeros(like.shape[0], self.heads, dtype=wide),)

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Decayed, Extra, Extra]:
        """Projections, gates and stabilisers."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in self.project(x).split(self.sizes, -1))
        o, gates = self.gates(x).split([self.sizes[2], 2 * self.heads], -1)
        gates = gates.to(before[0].dtype)
        i, f = (self.cap * torch.tanh(gates / self.cap) if self.cap else gates).chunk(2, -1)
        f = F.logsigmoid(f)
        m = _stabilisers(i, f, before[0])
        previous = torch.cat([before[0][:, None], m[:, :-1]], 1)
        k = k * ((i - m).exp() / self.key_size**0.5)[..., None]
        v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
        return Decayed(q, k, v, (f + previous - m)[..., None]), (last_of(m, before[0], mask),), (o, m, f)

    def show(self, asked: MatrixRecurrence, rest: Extra) -> None:
        """Record f, not the decay of what is kept, which is divided by exp(m)."""
        record("forget_gate", rest[2][:, 0].exp())

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """Division by the normaliser, norm of each head, gate, projection."""
        gate, m, _ = rest
        found, sums = o[..., :-1], o[..., -1:]
        one = (-m).clamp(max=math.log(torch.finfo(m.dtype).max) - 1).exp()  # no infinity, so no NaN backward
        found = found / (torch.maximum(sums.abs(), one[..., None]) + EPSILON)
        return self.out(gate.sigmoid() * self.norm(found.to(o.dtype).flatten(-2)))


def _stabilisers(i: Tensor, f: Tensor, before: Tensor) -> Tensor:
    """m_t = max(f_t + m_{t-1}, i_t) for i, f [B, T, heads] and m_0 [B, heads].

    With F the running sum of f, m_t - F_t is the largest of m_0 and i_s - F_s for s <= t. F is summed in
    float64, as m_t is the difference of two large numbers.
    """
    if i.shape[1] == 1:  # the only form that an exported graph needs, which has no cummax
        return torch.maximum(f + before[:, None], i)
    total = f.double().cumsum(1)
    best = torch.maximum((i - total).cummax(1).values, before[:, None].double())
    return (total + best).to(i.dtype)
