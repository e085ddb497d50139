"""RWKV-7's time mixing, a delta rule whose decay and rate are vectors.

Read next: rwkv7_layers.py, whole layers of RWKV-7; ../kernels/matrix.py, the recurrence.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.cells.initial import EPSILON, GateNorm
from weft.nn.cells.matrix import Extra, MatrixCell, last_of
from weft.nn.ops import Corrected, Linear
from weft.setting_types import Count, Size

MIXED = "rkvdag"  # receptance, key, value, decay, learning rate, gate
DECAYS = -6.5, -1.5  # b_d of the first and the last feature: half-lives of 761 and 6 steps
SHARES = 0.93, 0.53  # b_s of the first and the last feature, as in the authors' code


class RWKV7(MatrixCell):
    """S_t = diag(w_t) S_{t-1} - (a_t * c_t) c_t^T S_{t-1} + k_t v_t^T, o_t = S_t^T r_t.

    r, k', v = W x^, and with two small matrices each d = D_2 tanh(D_1 x^) + b_d, g = G_2 sigmoid(G_1 x^),
    a = sigmoid(A_2 A_1 x^ + b_a), where x^ is x_t mixed with x_{t-1}, by other weights for each of the six.
    w = exp(-e^(-1/2) sigmoid(d)), c = unit(k' * xi), k = k' * (1 + (a - 1) * alpha), and
    y = W_o (g * (norm(o) + (r . (rho * k)) v)). With `first_values`, v is v + s * (f - v) with values f of
    the first layer and s = sigmoid(N_2 N_1 x^ + b_s).

    Args:
        in_size: D, features of the input; with `first_values` x_t and then f_t.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        rank: features between the two small matrices.
        first_values: whether the last num_heads V features of the input are f.
        norm_epsilon: of the norm; 64e-5 in the authors' code.

    The state is (y, S, x_{t-1}); the norm is a layer norm of each head. As in the authors' code, D_1, A_1 and
    N_1 start with zeros and b_d so that features forget at different speeds.
    Source: Peng et al. 2025, "RWKV-7 'Goose' with expressive dynamic state evolution", section 4.

    Raises:
        ConfigError: `first_values`, and the input has no other features.

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
        num_heads: Count = 4,
        key_size: Size = 0,
        value_size: Size = 0,
        rank: int = 16,
        first_values: bool = False,
        norm_epsilon: float = EPSILON,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        keys, values = num_heads * self.key_size, num_heads * self.value_size
        self.sizes = [in_size - values, values] if first_values else [in_size]
        in_size = self.sizes[0]
        if in_size < 1:
            raise ConfigError(
                f"first_values: expected more than {values} inputs, those of the layer and then num_heads x "
                f"value_size values, got {self.in_size}"
            )
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
        if first_values:
            self.narrow, self.share = Linear(in_size, rank, bias=False), Linear(rank, values)
            with torch.no_grad():
                self.narrow.weight.zero_()
                self.share.bias.copy_(torch.linspace(*SHARES, values))
        self.norm = GateNorm(self.value_size, gates=num_heads, epsilon=norm_epsilon)
        self.norm_bias = nn.Parameter(torch.zeros(values))
        self.out = Linear(values, size, bias=False)

    def extra(self, like: Tensor) -> Extra:
        """(x_{t-1},), zeros."""
        return (like.new_zeros(like.shape[0], self.sizes[0]),)

    def values(self, x: Tensor, before: Tensor) -> Tensor:
        """v [B, T, heads V] of x [B, T, D] and the input before, without other layers."""
        return self.project["v"](self._mixed(x, change(x, before), "v"))  # type: ignore[no-any-return]

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Corrected, Extra, Extra]:
        """Token shift, projections, decay and rate."""
        x, *first = x.split(self.sizes, -1)
        moved = change(x, before[0])
        r, k, v, d, a, g = (self.project[name](self._mixed(x, moved, name)) for name in MIXED)
        if first:
            share = self.share(self.narrow(self._mixed(x, moved, "v"))).sigmoid()
            v = torch.lerp(v, first[0].to(v.dtype), share)
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

    def _mixed(self, x: Tensor, moved: Tensor, name: str) -> Tensor:
        """x^."""
        return x + moved * self.mix[MIXED.index(name)].to(x.dtype)


def change(x: Tensor, before: Tensor) -> Tensor:
    """x_{t-1} - x_t [B, T, D] of x [B, T, D] and the input before [B, D]."""
    return torch.cat([before[:, None].to(x.dtype), x[:, :-1]], 1) - x
