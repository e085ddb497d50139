"""C13: RWKV-7's time mixing, a delta rule whose decay and rate are vectors. Read next: ../chunks.py."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.initial import GateNorm
from weft.nn.cells.matrix import Extra, MatrixCell, last_of
from weft.nn.chunks import Corrected
from weft.nn.kernels.linear import Linear

MIXED = "rkvdag"  # receptance, key, value, decay, learning rate, gate
DECAYS = -6.5, -1.5  # b_d of the first and the last feature: half-lives of 761 and 6 steps


class RWKV7(MatrixCell):
    """S_t = diag(w_t) S_{t-1} - (a_t * c_t) c_t^T S_{t-1} + k_t v_t^T, o_t = S_t^T r_t.

    r, k', v = W x^, and with two small matrices each d = D_2 tanh(D_1 x^) + b_d, g = G_2 sigmoid(G_1 x^),
    a = sigmoid(A_2 A_1 x^ + b_a), where x^ is x_t mixed with x_{t-1}, by other weights for each of the six.
    w = exp(-e^(-1/2) sigmoid(d)), c = unit(k' * xi), k = k' * (1 + (a - 1) * alpha), and
    y = W_o (g * (norm(o) + (r . (rho * k)) v)).

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        rank: features between the two small matrices.

    The state is (y, S, x_{t-1}); the norm is a layer norm of each head. As in the authors' code, D_1 and A_1
    start with zeros and b_d so that features forget at different speeds.
    Source: Peng et al. 2025, "RWKV-7 'Goose' with expressive dynamic state evolution", section 4. The paper
    mixes the values of later layers with those of the first; a cell has no other layer. The epsilon of the
    authors' norm is 64e-5, here 1e-5.

    Example:
        >>> import torch
        >>> cell = RWKV7(3, 8)
        >>> y, (last, S, x) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, S.shape, x.shape
        (torch.Size([2, 7, 8]), torch.Size([2, 4, 2, 2]), torch.Size([2, 3]))
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_heads: int = 4,
        key_size: int = 0,
        value_size: int = 0,
        rank: int = 16,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        keys, values = num_heads * self.key_size, num_heads * self.value_size
        self.mix = nn.Parameter(torch.full((len(MIXED), in_size), 0.5))
        outs = {"r": keys, "k": keys, "v": values, "d": rank, "a": rank, "g": rank}
        self.project = nn.ModuleDict({name: Linear(in_size, outs[name], bias=False) for name in MIXED})
        self.decay, self.rate = Linear(rank, keys), Linear(rank, keys)
        with torch.no_grad():
            self.project["d"].weight.zero_()
            self.project["a"].weight.zero_()
            self.decay.bias.copy_(torch.linspace(*DECAYS, keys))
        self.gate = Linear(rank, values, bias=False)
        self.remove = nn.Parameter(torch.ones(keys))  # xi
        self.replace = nn.Parameter(torch.ones(keys))  # alpha
        self.bonus = nn.Parameter(torch.zeros(num_heads, self.key_size))  # rho
        self.norm = GateNorm(self.value_size, gates=num_heads)
        self.norm_bias = nn.Parameter(torch.zeros(values))
        self.out = Linear(values, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """(x_{t-1},), zeros [B, D]."""
        return (like.new_zeros(like.shape[0], self.in_size),)

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Corrected, Extra, Extra]:
        """Token shift, projections, decay and rate."""
        change = torch.cat([before[0][:, None].to(x.dtype), x[:, :-1]], 1) - x
        r, k, v, d, a, g = (
            self.project[name](x + change * self.mix[n].to(x.dtype)) for n, name in enumerate(MIXED)
        )
        decay = -math.exp(-0.5) * self.decay(torch.tanh(d)).sigmoid()
        a, c = self.rate(a).sigmoid(), k * self.remove
        k = k * (1 + (a - 1) * self.replace)
        r, k, v, decay, a, c = (part.unflatten(-1, (self.heads, -1)) for part in (r, k, v, decay, a, c))
        c = F.normalize(c, dim=-1)
        extra = (r * self.bonus * k).sum(-1, keepdim=True) * v
        return (
            Corrected(r, k, v, decay, -c, a * c),
            (last_of(x, before[0], mask),),
            (self.gate(g.sigmoid()), extra.flatten(-2)),
        )

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """Norm of each head, the current value once more, gate, projection."""
        gate, extra = rest
        return self.out(gate * (self.norm(o.flatten(-2)) + self.norm_bias + extra))
