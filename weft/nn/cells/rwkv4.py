"""RWKV-4's time mixing, a weighted mean over the past whose weights fade. Read next: rwkv7.py."""

import math

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.cells.matrix import last_of
from weft.nn.cells.rwkv7 import change
from weft.nn.ops import Linear, recur
from weft.probe import exporting, record_all, watching

State = tuple[Tensor, ...]
MIXED = "rkv"  # receptance, key, value
DECAYS = -5.0, 3.0  # log w of the first and the last feature
NOTHING = -1e30  # m before the first step; smaller than any key


class RWKV4(Cell):
    """y_t = W_o (sigmoid(r_t) * (a_{t-1} + exp(u + k_t) v_t) / (b_{t-1} + exp(u + k_t))).

    a_t = exp(-w) a_{t-1} + exp(k_t) v_t, b_t = exp(-w) b_{t-1} + exp(k_t) and w = exp(decay). r, k, v = W x^,
    where x^ is x_t mixed with x_{t-1}, by other weights for each of the three. a and b are stored divided by
    exp(m_t) with m_t = max(m_{t-1} - w, k_t), so that no exponential overflows.

    Args:
        in_size: D, features of the input.
        size: H, features of state and output.

    The state is (y, a, b, m, x_{t-1}). Decays and u start near those of the paper, which depend on the layer;
    mixtures start with 0.5.
    Source: Peng et al. 2023, "RWKV: reinventing RNNs for the Transformer era", section 3.1 and appendix E.

    Example:
        >>> import torch
        >>> cell = RWKV4(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__(in_size, size)
        self.mix = nn.Parameter(torch.full((len(MIXED), in_size), 0.5))
        self.project = nn.ModuleDict({name: Linear(in_size, size, bias=False) for name in MIXED})
        self.decay = nn.Parameter(torch.linspace(*DECAYS, size))
        self.bonus = nn.Parameter(math.log(0.3) + 0.5 * ((torch.arange(size) + 1) % 3 - 1))  # u
        self.out = Linear(size, size, bias=False)

    def start(self, like: Tensor) -> State:
        """Zeros, and m below any key; a, b and m in float32 at least."""
        y = like.new_zeros(like.shape[0], self.size)
        zeros = y.to(torch.promote_types(y.dtype, torch.float32))
        return y, zeros, zeros, torch.full_like(zeros, NOTHING), like.new_zeros(like.shape[0], self.in_size)

    def carried(self, state: State) -> tuple[Tensor]:
        """The mean a / b; b is 0 before the first step and then at least 1."""
        return ((state[1] / state[2].clamp(min=1)).to(state[0].dtype),)

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """The initial state with a given mean, weighted as one value with the key 0."""
        y, a, b, m, last = self.start(carried[0])
        return y, carried[0].to(a.dtype), torch.ones_like(b), torch.zeros_like(m), last

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        _, a, b, m, last = state
        r, k, v = (part[:, 0] for part in self._read(x[:, None], last))
        y = self._written(r, k, v, a, b, m)
        w = self.decay.to(m.dtype).exp()
        top = torch.maximum(m - w, k)
        kept, entering = torch.exp(m - w - top), torch.exp(k - top)
        past, a = kept * b, kept * a + entering * v
        b = past + entering
        if watching():  # of the weights of a / b, which add up to one
            record_all(input_gate=entering / b, forget_gate=past / b, hidden=y)
        return y, (y, a, b, top, x)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps: keys and values at once, then a scan."""
        if watching() or exporting():
            return super().run(x, state, mask)
        y, a, b, m, last = state
        r, k, v = self._read(x, last)
        w = self.decay.to(m.dtype).exp()
        steps = torch.arange(x.shape[1] + 1, device=x.device)[:, None] * w
        tops = (torch.cat([m[:, None], k], 1) + steps).cummax(1).values - steps  # [B, T + 1, H]
        kept, entering = torch.exp(tops[:, :-1] - w - tops[:, 1:]), torch.exp(k - tops[:, 1:])
        sums = recur(
            torch.cat([kept, kept], -1),
            torch.cat([entering * v, entering], -1),
            torch.cat([a, b], -1),
            mask,
        )
        before = torch.cat([torch.cat([a, b], -1)[:, None], sums[:, :-1]], 1)
        ys = self._written(r, k, v, *before.chunk(2, -1), tops[:, :-1])
        after = (
            last_of(ys, y, mask),
            *sums[:, -1].chunk(2, -1),
            last_of(tops[:, 1:], m, mask),
            last_of(x, last, mask),
        )
        return ys if mask is None else ys * mask[..., None], after

    def _read(self, x: Tensor, last: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """r, k and v [B, T, H] of x [B, T, D], k and v as wide as the state."""
        moved = change(x, last)
        r, k, v = (
            self.project[name](x + moved * mix.to(x.dtype)) for name, mix in zip(MIXED, self.mix, strict=True)
        )
        wide = torch.promote_types(k.dtype, torch.float32)
        return r, k.to(wide), v.to(wide)

    def _written(self, r: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, m: Tensor) -> Tensor:
        """y, from a, b and m before the step."""
        now = k + self.bonus.to(k.dtype)
        top = torch.maximum(m, now)
        past, now = torch.exp(m - top), torch.exp(now - top)
        mean = (past * a + now * v) / (past * b + now)
        return self.out(r.sigmoid() * mean.to(r.dtype))  # type: ignore[no-any-return]
