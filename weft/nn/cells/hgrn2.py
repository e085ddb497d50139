"""HGRN2, a gated recurrence whose state became a matrix. Read next: mlstm.py."""

import torch.nn.functional as F
from torch import Tensor

from weft.errors import ConfigError
from weft.nn.cells.matrix import Extra, MatrixCell
from weft.nn.norms import RMSNorm
from weft.nn.ops import Decayed, Linear
from weft.setting_types import Count, Size


class HGRN2(MatrixCell):
    """S_t = diag(f_t) S_{t-1} + (1 - f_t) i_t^T, o_t = S_t^T q_t, y_t = W_o norm(o_t).

    f_t = l + (1 - l) sigmoid(W_f x_t + b_f), i_t = W_i x_t, q_t = swish(W_q x_t), with a lower bound l.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices S.
        key_size: K, the paper's expansion ratio; 0 = size / num_heads, rounded up.
        value_size: V; 0 = size / num_heads, rounded up.
        lower_bound: l; the paper lets it grow with the layer, learned, so that upper layers remember longer.
        forget_bias: initial value of b_f.

    The state is (y, S); the norm is a root-mean-square norm of each head, in the authors' code one over all
    features. There the forget gate has no bias.
    Source: Qin et al. 2024, "HGRN2: gated linear RNNs with state expansion", section 3.

    Raises:
        ConfigError: a lower bound outside [0, 1).

    Example:
        >>> import torch
        >>> cell = HGRN2(3, 8)
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
        lower_bound: float = 0.0,
        forget_bias: float = 0.0,
    ) -> None:
        super().__init__(in_size, size, num_heads=num_heads, key_size=key_size, value_size=value_size)
        if not 0.0 <= lower_bound < 1.0:
            raise ConfigError(f"lower_bound: expected a number from 0 to below 1, got {lower_bound}")
        keys, values = num_heads * self.key_size, num_heads * self.value_size
        self.lower_bound = lower_bound
        self.project = Linear(in_size, keys + values, bias=False)
        self.forget = Linear(in_size, keys)
        self.forget.bias.data.fill_(forget_bias)
        self.norm = RMSNorm(self.value_size, eps=1e-5)
        self.out = Linear(values, size, bias=False)
        self.sizes = [keys, values]

    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[Decayed, Extra, Extra]:
        """Projections and forget gates; 1 - f is (1 - l) sigmoid(-z), without cancellation."""
        q, i = self.project(x).split(self.sizes, -1)
        z = self.forget(x)
        k = (1 - self.lower_bound) * (-z).sigmoid()
        decay = F.logsigmoid(z) if self.lower_bound == 0 else (-k).log1p()
        q, k, i, decay = (part.unflatten(-1, (self.heads, -1)) for part in (F.silu(q), k, i, decay))
        return Decayed(q, k, i, decay), (), ()
