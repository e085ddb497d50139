"""The diagonal structured state space, a bank of linear filters for each feature. Read next: lru.py.

All steps run in chunks: inside a chunk the filter is a triangular matrix of its impulse response, and the
state carries from chunk to chunk.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.ops import Linear, shown_last
from weft.probe import exporting, record, watching
from weft.setting_types import Count
from weft.shapes import check_choice

Rule = Literal["zoh", "bilinear"]
State = tuple[Tensor, Tensor, Tensor]
CHUNK = 64  # steps; a chunk costs B H (CHUNK + 4 N) products a step


class Filter(NamedTuple):
    """The discrete system h_t = a h_{t-1} + b u_t, y_t = 2 Re(C h_t), in real numbers, [H, N] each."""

    log_radius: Tensor  # log |a|
    angle: Tensor  # of a
    b_real: Tensor
    b_imaginary: Tensor


class S4D(Cell):
    """h_t = A' h_{t-1} + B' u_t, y_t = 2 Re(C h_t) + D u_t for each feature u, with complex diagonal A.

    A' = exp(dt A) and B' = (A' - 1) / A (zero-order hold), or A' = (1 + dt A / 2) / (1 - dt A / 2) and
    B' = dt / (1 - dt A / 2) (bilinear). A has negative real parts, and one of each conjugate pair is kept.

    Args:
        in_size: D, features of the input; if it is not H, u is W_u x_t.
        size: H, features of the output, each with its own filter.
        num_states: N, complex numbers of the state of each feature, half the paper's N.
        rule: how A and B become discrete.
        min_step, max_step: dt starts log-uniformly distributed between them.

    The state is (y, Re h, Im h); no step reads y. A starts as -1/2 + i pi n (S4D-Lin), B is 1
    and C is learned.

    Raises:
        ConfigError: an unknown `rule`.

    Source: Gu, Gupta, Goel & Ré 2022, "On the parameterization and initialization of diagonal state space
    models", equations 1, 4 and 9 and listing 1.

    Example:
        >>> import torch
        >>> cell = S4D(3, 5)
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
        num_states: Count = 32,
        rule: Rule = "zoh",
        min_step: float = 0.001,
        max_step: float = 0.1,
    ) -> None:
        super().__init__(in_size, size)
        check_choice("rule", rule, Rule)
        self.num_states = num_states
        self.rule = rule
        self.entry = nn.Identity() if in_size == size else Linear(in_size, size, bias=False)
        log_step = torch.empty(size, 1).uniform_(math.log(min_step), math.log(max_step))
        self.log_step = nn.Parameter(log_step)
        self.log_decay = nn.Parameter(torch.full((size, num_states), math.log(0.5)))  # log(-Re A)
        self.frequency = nn.Parameter(math.pi * torch.arange(num_states).float().repeat(size, 1))  # Im A
        self.weight_o = nn.Parameter(torch.randn(2, size, num_states) * math.sqrt(0.5))  # Re C, Im C
        self.skip = nn.Parameter(torch.randn(size))

    def start(self, like: Tensor) -> State:
        """(y, Re h, Im h), zeros [B, H] and [B, H, N]."""
        zeros = like.new_zeros(like.shape[0], self.size, self.num_states)
        return like.new_zeros(like.shape[0], self.size), zeros, zeros

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        _, real, imaginary = state
        u = self.entry(x)
        log_radius, angle, b_real, b_imaginary = self._filter()
        radius = torch.exp(log_radius)
        a, b = radius * angle.cos(), radius * angle.sin()
        real, imaginary = (
            a * real - b * imaginary + b_real * u[..., None],
            a * imaginary + b * real + b_imaginary * u[..., None],
        )
        y = 2 * (self.weight_o[0] * real - self.weight_o[1] * imaginary).sum(-1).to(u.dtype) + self.skip * u
        if watching():
            record("forget_gate", radius.amax(1).expand_as(y))  # the slowest state of each feature
            record("transition", torch.complex(a, b).flatten().expand(y.shape[0], -1))
            record("hidden", y)
        return y, (y, real.to(state[1].dtype), imaginary.to(state[1].dtype))

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        if watching() or exporting():
            return super().run(x, state, mask)
        before, real, imaginary = state
        u = self.entry(x)
        if mask is not None:
            u = u.masked_fill(~mask[..., None], 0.0)
        h = torch.cat([real, imaginary], -1).to(torch.promote_types(real.dtype, torch.float32))  # [B, H, 2 N]
        tables = _Tables(self._filter(), self.weight_o, min(CHUNK, u.shape[1]))
        ys = []
        for at in range(0, u.shape[1], CHUNK):
            y, h = tables.chunk(u[:, at : at + CHUNK], h, None if mask is None else mask[:, at : at + CHUNK])
            ys.append(y)
        y, shown = shown_last(torch.cat(ys, 1).to(u.dtype) + self.skip * u, before, mask)
        real, imaginary = h.to(before.dtype).chunk(2, -1)
        return y, (shown, real, imaginary)

    def _filter(self) -> Filter:
        """The discrete system, in at least float32."""
        wide = torch.promote_types(self.skip.dtype, torch.float32)
        dt, decay = self.log_step.to(wide).exp(), self.log_decay.to(wide).exp()
        real, imaginary = -decay * dt, self.frequency.to(wide) * dt  # dt A
        if self.rule == "zoh":
            grown = real.exp()
            # A' - 1, without the cancellation that a small dt brings
            up = torch.expm1(real) * imaginary.cos() - 2 * (imaginary / 2).sin().square()
            across = grown * imaginary.sin()
            length = real.square() + imaginary.square()
            b_real = dt * (up * real + across * imaginary) / length
            return Filter(real, imaginary, b_real, dt * (across * real - up * imaginary) / length)
        below = (1 - real / 2).square() + (imaginary / 2).square()  # |1 - dt A / 2|^2
        above = (1 + real / 2).square() + (imaginary / 2).square()
        angle = torch.atan2(imaginary / 2, 1 + real / 2) + torch.atan2(imaginary / 2, 1 - real / 2)
        return Filter(
            (above.log() - below.log()) / 2, angle, dt * (1 - real / 2) / below, dt * imaginary / 2 / below
        )


class _Tables:
    """What a chunk of L steps needs of a filter: its impulse response, and powers of a.

    `weight_o` is [2, H, N], Re C and Im C.
    """

    def __init__(self, of: Filter, weight_o: Tensor, steps: int) -> None:
        self.steps = steps
        power = torch.arange(steps + 1, device=weight_o.device, dtype=of.angle.dtype)[:, None, None]
        radius, angle = torch.exp(power * of.log_radius), power * of.angle
        self.real, self.imaginary = radius * angle.cos(), radius * angle.sin()  # a^t, [L + 1, H, N]
        entered = (
            self.real * of.b_real - self.imaginary * of.b_imaginary,
            self.real * of.b_imaginary + self.imaginary * of.b_real,
        )
        self.entered = torch.cat(entered, -1)[:-1].permute(1, 0, 2)  # a^t b, [H, L, 2 N]
        c_real, c_imaginary = weight_o.to(self.real.dtype)
        shows = torch.cat([2 * c_real, -2 * c_imaginary], -1)  # [H, 2 N]
        response = (self.entered * shows[:, None]).sum(-1)  # [H, L]
        late = torch.arange(steps, device=weight_o.device)
        lag = late[:, None] - late
        self.triangle = response[:, lag.clamp(min=0)].masked_fill(lag < 0, 0.0)  # [H, L, L]
        real, imaginary = self.real[1:], self.imaginary[1:]
        left = 2 * (c_real * real - c_imaginary * imaginary)
        right = -2 * (c_real * imaginary + c_imaginary * real)
        self.shown = torch.cat([left, right], -1).permute(1, 0, 2)  # C a^(t + 1), [H, L, 2 N]

    def chunk(self, u: Tensor, h: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """u [B, L, H] and h [B, H, 2 N] to y [B, L, H] without D u and the next h."""
        steps = u.shape[1]
        by_feature, states = u.permute(2, 1, 0).to(h.dtype), h.permute(1, 2, 0)  # [H, L, B], [H, 2 N, B]
        y = self.triangle[:, :steps, :steps] @ by_feature + self.shown[:, :steps] @ states
        if mask is None:
            real, imaginary = self.real[steps], self.imaginary[steps]
        else:  # shift each row so that its last real step is the chunk's last
            count = mask.sum(1)
            real, imaginary = self.real[count], self.imaginary[count]  # [B, H, N]
            source = torch.arange(steps, device=u.device) - (steps - count)[:, None]
            moved = u.gather(1, source.clamp(min=0)[..., None].expand_as(u))
            by_feature = moved.masked_fill((source < 0)[..., None], 0.0).permute(2, 1, 0).to(h.dtype)
        entered = self.entered[:, :steps].flip(1).mT @ by_feature  # [H, 2 N, B]
        left, right = h.chunk(2, -1)
        decayed = torch.cat([real * left - imaginary * right, real * right + imaginary * left], -1)
        return y.permute(2, 1, 0), decayed + entered.permute(2, 0, 1)
