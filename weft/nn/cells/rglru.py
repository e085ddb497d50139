"""The real-gated linear recurrent unit of Griffin. Read next: initial.py, its matrices by heads."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import Headwise
from weft.nn.ops import Linear, recur
from weft.probe import exporting, record_all, watching
from weft.setting_types import Count

SHARPNESS = 8.0
"""c of equation 6: a = sigmoid(Lambda)^(c r)."""


class RGLRU(VectorCell):
    """r, i = sigmoid(W x_t + b), a = exp(-8 softplus(Lambda) r), h_t = a h_{t-1} + sqrt(1 - a^2) (i x_t).

    Args:
        in_size: D, features of the input; if it is not H, x_t stands for W_u x_t.
        size: H, features of the state.
        num_heads: blocks of the block-diagonal matrices of the two gates; 1 for full matrices.

    Lambda starts so that a^(1 / r) is uniform between 0.9 and 0.999.
    Source: De et al. 2024, "Griffin: mixing gated linear recurrences with local attention for efficient
    language models", equations 1 to 4 and section 2.4; softplus(Lambda) is -log sigmoid(-Lambda), so our
    Lambda is minus the paper's.

    Example:
        >>> import torch
        >>> cell = RGLRU(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False

    def __init__(self, in_size: int, size: int, *, num_heads: Count = 1) -> None:
        super().__init__(in_size, size)
        self.entry = nn.Identity() if in_size == size else Linear(in_size, size, bias=False)
        self.recurrence_gate = Headwise(size, num_heads)
        self.input_gate = Headwise(size, num_heads)
        kept = torch.empty(size).uniform_(0.9**2, 0.999**2).sqrt()
        self.rate = nn.Parameter(torch.log(torch.expm1(-torch.log(kept) / SHARPNESS)))

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        a, entering, i = self._gates(x)
        h = a * state[0] + entering
        record_all(forget_gate=a, input_gate=i, hidden=h)
        return h, (h,)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps: the gates at once, then a scan."""
        if watching() or exporting():
            return super().run(x, state, mask)
        a, entering, _ = self._gates(x)
        h = recur(a, entering, state[0], mask)
        y = h if mask is None else h.masked_fill(~mask[..., None], 0.0)
        return y, (h[:, -1],)

    def _gates(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """a, sqrt(1 - a^2) i x and i, [.., H] each."""
        x = self.entry(x)
        r, i = self.recurrence_gate(x).sigmoid(), self.input_gate(x).sigmoid()
        log_a = -SHARPNESS * r * F.softplus(self.rate)
        least = torch.finfo(log_a.dtype).tiny  # the slope of a square root is infinite at 0
        scale = (-torch.expm1(2 * log_a)).clamp(min=least).sqrt()
        return torch.exp(log_a), scale * i * x, i
