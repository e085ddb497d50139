"""The linear recurrent unit, a linear recurrence of complex numbers. Read next: rglru.py, s4d.py."""

import math

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import linear, recur, shown_last
from weft.probe import exporting, record, watching
from weft.setting_types import Count

State = tuple[Tensor, Tensor, Tensor]


class LRU(Cell):
    """h_t = lambda h_{t-1} + gamma B x_t, y_t = Re(C h_t) + D x_t, with h, B and C complex.

    lambda = exp(-exp(nu) + i exp(theta)), so |lambda| < 1 for every parameter. gamma is learned and starts at
    sqrt(1 - |lambda|^2), so that h starts with the same size for slow and fast units.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_states: N, complex numbers of h; None takes H.
        min_radius, max_radius: |lambda| starts uniformly distributed on this ring.
        max_phase: the angle of lambda starts uniformly below it.

    The state is (y, Re h, Im h); no step reads y. D is a full matrix, as in equation 1; the paper's code
    has a diagonal one.

    Raises:
        ConfigError: not 0 <= min_radius < max_radius <= 1, or max_phase is not above 0.

    Source: Orvieto et al. 2023, "Resurrecting recurrent neural networks for long sequences", equations 1 to 8
    and appendix A.

    Example:
        >>> import torch
        >>> cell = LRU(3, 5)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False
    keeps_output = True

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_states: Count | None = None,
        min_radius: float = 0.0,
        max_radius: float = 1.0,
        max_phase: float = 2 * math.pi,
    ) -> None:
        super().__init__(in_size, size)
        if not 0.0 <= min_radius < max_radius <= 1.0:
            raise ConfigError(
                f"max_radius: expected 0 <= min_radius < max_radius <= 1, got {min_radius} and {max_radius}"
            )
        if max_phase <= 0:
            raise ConfigError(f"max_phase: expected an angle above 0, got {max_phase}")
        self.num_states = states = num_states or size
        squared = torch.empty(states).uniform_(min_radius**2, max_radius**2).clamp(1e-8, 1 - 1e-6)
        self.nu = nn.Parameter(torch.log(-0.5 * torch.log(squared)))
        self.theta = nn.Parameter(torch.log(torch.empty(states).uniform_(1e-6, 1.0) * max_phase))
        self.gamma = nn.Parameter(0.5 * torch.log(1 - squared))
        self.weight_x = nn.Parameter(torch.randn(2 * states, in_size) / math.sqrt(2 * in_size))
        self.weight_o = nn.Parameter(torch.randn(size, 2 * states) / math.sqrt(states))
        self.weight_d, _ = input_weights(in_size, size, gates=1)

    def start(self, like: Tensor) -> State:
        """(y, Re h, Im h), zeros [B, H] and [B, N]."""
        zeros = like.new_zeros(like.shape[0], self.num_states)
        return like.new_zeros(like.shape[0], self.size), zeros, zeros

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        _, real, imaginary = state
        radius, angle = self._polar()
        a, b = radius * angle.cos(), radius * angle.sin()
        u, v = self._entering(x)
        real, imaginary = a * real - b * imaginary + u, a * imaginary + b * real + v
        y = self._shown(real, imaginary, x)
        if watching():
            record("forget_gate", radius.expand_as(real))
            polar = torch.polar(*(part.to(_wide(part)) for part in (radius, angle)))
            record("transition", polar.expand_as(real))
            record("cell", (real.square() + imaginary.square()).sqrt())
            record("hidden", y)
        return y, (y, real, imaginary)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps: a scan of complex numbers between two matrix products."""
        if watching() or exporting():
            return super().run(x, state, mask)
        before, real, imaginary = state
        entering = torch.complex(*(part.to(_wide(part)) for part in self._entering(x)))
        radius, angle = (part.to(_wide(part)) for part in self._polar())
        h = torch.complex(real.to(_wide(real)), imaginary.to(_wide(imaginary)))
        hs = recur(torch.polar(radius, angle).expand_as(entering), entering, h, mask)
        last = hs[:, -1]
        y, shown = shown_last(self._shown(hs.real, hs.imag, x), before, mask)
        return y, (shown, last.real.to(real.dtype), last.imag.to(real.dtype))

    def _polar(self) -> tuple[Tensor, Tensor]:
        """|lambda| and its angle, [N]."""
        return torch.exp(-torch.exp(self.nu)), torch.exp(self.theta)

    def _entering(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The parts of gamma B x, [.., N] each."""
        scale = torch.exp(self.gamma)
        real, imaginary = linear(x, self.weight_x).chunk(2, -1)
        return scale * real, scale * imaginary

    def _shown(self, real: Tensor, imaginary: Tensor, x: Tensor) -> Tensor:
        """Re(C h) + D x, [.., H]; weight_o is [Re C, -Im C]."""
        h = torch.cat([real, imaginary], -1).to(self.weight_o.dtype)
        return linear(h, self.weight_o) + linear(x, self.weight_d)


def _wide(part: Tensor) -> torch.dtype:
    """Complex numbers need at least float32."""
    return torch.promote_types(part.dtype, torch.float32)
