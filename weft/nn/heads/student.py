"""A Student t distribution at each position: heavier tails than a Gaussian."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from weft.masks import or_all, positions, summed
from weft.nn.heads.head import Loss, RealHead
from weft.nn.ops import Linear

STEPS = 60  # bisection steps for a quantile


class Tailed(NamedTuple):
    """Parameters of a Student t distribution."""

    freedom: Tensor  # [..] degrees of freedom ν, above 2
    mean: Tensor  # [..]
    scale: Tensor  # [..]


class Student(RealHead):
    """y = μ + σ t_ν with ν = 2 + softplus(·), so the variance is finite.

    Args:
        in_size: D, features of h.
        least: minimum scale.

    Source: DeepAR (Salinas et al. 2020).

    Example:
        >>> import torch
        >>> freedom, mean, scale = Student(5)(torch.zeros(2, 3, 5))
        >>> mean.shape, bool((freedom > 2).all())  # [B, T]
        (torch.Size([2, 3]), True)
    """

    def __init__(self, in_size: int, *, least: float = 1e-3) -> None:
        super().__init__(in_size=in_size)
        self.least = least
        # ν = 30 is nearly Gaussian; softplus(28) is 28
        self.standard = 0.0, math.log(math.expm1(1 - least)), 28.0
        self.weight = Linear(in_size, 3)

    def forward(self, h: Tensor) -> Tailed:
        """[.., D] to degrees of freedom, mean and scale, in at least float32."""
        three = self.weight(h)
        three = three.to(torch.promote_types(three.dtype, torch.float32))
        freedom = 2 + functional.softplus(three[..., 2])
        return Tailed(freedom, three[..., 0], functional.softplus(three[..., 1]) + self.least)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """-log t_ν((y - μ) / σ) + log σ, nats."""
        mask = or_all(mask, target)
        freedom, mean, scale = self(positions(h, mask))
        z = (positions(target, mask).to(mean.dtype) - mean) / scale
        half = (freedom + 1) / 2
        logp = torch.lgamma(half) - torch.lgamma(freedom / 2) - 0.5 * (freedom * math.pi).log() - scale.log()
        logp = logp - half * torch.log1p(z.square() / freedom)
        return Loss(-summed(logp, mask), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(h).mean  # type: ignore[no-any-return]

    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        """See RealHead.quantiles; uses bisection, because torch has no inverse distribution function."""
        freedom, mean, scale = (part[..., None] for part in self(h))
        levels = levels.to(mean.dtype).expand(*mean.shape[:-1], len(levels))
        high = torch.full_like(levels, 1e6)
        low = -high
        for _ in range(STEPS):
            middle = (low + high) / 2
            below = _cumulative(middle, freedom) < levels
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return mean + scale * (low + high) / 2


def _cumulative(t: Tensor, freedom: Tensor) -> Tensor:
    """P(t_ν <= t), with the substitution t = √ν tan θ and Simpson's rule over θ."""
    count = 200
    angle = torch.atan(t / freedom.sqrt())  # [.., Q]
    grid = torch.linspace(0, 1, count + 1, dtype=t.dtype, device=t.device)
    weights = torch.ones_like(grid)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    powers = torch.cos(angle[..., None] * grid) ** (freedom[..., None] - 1)
    integral = angle / (3 * count) * (powers * weights).sum(-1)
    log_constant = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
    return 0.5 + log_constant.exp() * integral
