"""Mamba's layer, a selective state space with its convolution and gate. Read next: block.py, the layer's
norm and residual connection; ../kernels/light.py, its scan.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.cells.convolution import ShortConvolution
from weft.nn.ops import Linear, selective, selective_step, shown_last
from weft.probe import exporting, record, watching
from weft.setting_types import Count

State = tuple[Tensor, Tensor, Tensor]


class Mamba(Cell):
    """h_t = exp(dt A) h_{t-1} + dt B u, y_t = W_o ((C h_t + D u) silu(W_z x)), u = silu(conv(W_u x)).

    dt = softplus(W_dt u + b), B and C depend on u too, so each position decides what h keeps and what it
    reads; h has N numbers for each of the E features of u.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        inner: E; None takes 2 H.
        num_states: N.
        convolution: steps of the short convolution.
        rank: of W_dt; None takes D / 16, rounded up.
        min_step, max_step: softplus(b) starts log-uniformly distributed between them.

    The state is (y, h [B, N, E], the convolution's inputs); no step reads y. A starts as -1 .. -N for each
    feature (S4D-Real), and is -exp(log_decay).
    Source: Gu & Dao 2023, "Mamba: linear-time sequence modeling with selective state spaces", algorithm 2,
    section 3.4 and equation 4, with their code's B' = dt B.

    Example:
        >>> import torch
        >>> cell = Mamba(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False
    bridges = False
    keeps_output = True

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        inner: int | None = None,
        num_states: Count = 16,
        convolution: int = 4,
        rank: int | None = None,
        min_step: float = 0.001,
        max_step: float = 0.1,
    ) -> None:
        super().__init__(in_size, size)
        self.inner = inner = inner or 2 * size
        self.num_states = num_states
        self.rank = rank = rank or math.ceil(in_size / 16)
        self.enter = Linear(in_size, 2 * inner, bias=False)
        self.convolution = ShortConvolution(inner, convolution)
        self.select = Linear(inner, rank + 2 * num_states, bias=False)
        self.step_size = Linear(rank, inner)
        nn.init.uniform_(self.step_size.weight, -(rank**-0.5), rank**-0.5)
        dt = torch.exp(torch.empty(inner).uniform_(math.log(min_step), math.log(max_step)))
        self.step_size.bias.data.copy_(dt + torch.log(-torch.expm1(-dt)))  # softplus backwards
        decay = torch.arange(1, num_states + 1).float().log()
        self.log_decay = nn.Parameter(decay[:, None].repeat(1, inner))  # [N, E]
        self.skip = nn.Parameter(torch.ones(inner))
        self.leave = Linear(inner, size, bias=False)

    def start(self, like: Tensor) -> State:
        """(y, h, the convolution's inputs), zeros [B, H], [B, N, E], [B, (K - 1) E]."""
        rows = like.shape[0]
        h = like.new_zeros(rows, self.num_states, self.inner)
        return like.new_zeros(rows, self.size), h, self.convolution.start(like)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        _, h, window = state
        u, gate = self.enter(x).chunk(2, -1)
        u, window = self.convolution.step(u, window)
        u = F.silu(u)
        dt, a, b, c = self._selected(u)
        s, h = selective_step(u, dt, a, b, c, h)
        y = self.leave((s + self.skip * u) * F.silu(gate))
        if watching():
            kept = torch.exp(dt[:, None] * a)  # [B, N, E]
            record("forget_gate", kept.amax(1))  # the slowest state of each feature
            record("transition", kept.mT.flatten(1))
            record("hidden", y)
        return y, (y, h, window)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps: products over all positions, and one scan."""
        if watching() or exporting():
            return super().run(x, state, mask)
        before, h, window = state
        u, gate = self.enter(x).chunk(2, -1)
        u, window = self.convolution(u, window, mask)
        u = F.silu(u)
        dt, a, b, c = self._selected(u)
        if mask is not None:
            dt = dt.masked_fill(~mask[..., None], 0.0)  # h_t = h_{t-1}
        s, h = selective(u, dt, a, b, c, h)
        y, shown = shown_last(self.leave((s + self.skip * u) * F.silu(gate)), before, mask)
        return y, (shown, h, window)

    def _selected(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """dt [.., E], A [N, E], B and C [.., N]."""
        rank, b, c = self.select(u).split([self.rank, self.num_states, self.num_states], -1)
        return F.softplus(self.step_size(rank)), -torch.exp(self.log_decay), b, c
