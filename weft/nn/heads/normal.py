"""A Gaussian at each position, by mean and standard deviation."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from weft.masks import or_all, positions, summed
from weft.nn.heads.head import Loss, RealHead
from weft.nn.ops import Linear


class GaussianParameters(NamedTuple):
    """Parameters of a Gaussian."""

    mean: Tensor  # [..]
    std: Tensor  # [..]


class Normal(RealHead):
    """y ~ N(μ, σ²) with μ = w_μ h + b_μ, σ = softplus(w_σ h + b_σ) + least.

    Args:
        in_size: D, features of h.
        least: minimum standard deviation, which prevents division by zero on constant series.

    Source: Nix & Weigend 1994; softplus as in DeepAR (Salinas et al. 2020).

    Example:
        >>> import torch
        >>> bell = Normal(5)(torch.zeros(2, 3, 5))
        >>> bell[0].shape, bool((bell[1] > 0).all())  # means and standard deviations [B, T]
        (torch.Size([2, 3]), True)
    """

    def __init__(self, in_size: int, *, least: float = 1e-3) -> None:
        super().__init__(in_size=in_size)
        self.least = least
        self.standard = 0.0, math.log(math.expm1(1 - least))
        self.weight = Linear(in_size, 2)

    def forward(self, h: Tensor) -> GaussianParameters:
        """[.., D] to mean and standard deviation, in at least float32."""
        both = self.weight(h)
        both = both.to(torch.promote_types(both.dtype, torch.float32))
        return GaussianParameters(both[..., 0], functional.softplus(both[..., 1]) + self.least)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """-log N(y; μ, σ²), nats."""
        mask = or_all(mask, target)
        mean, std = self(positions(h, mask))
        z = (positions(target, mask).to(mean.dtype) - mean) / std
        return Loss(summed(0.5 * z.square() + std.log() + 0.5 * math.log(2 * math.pi), mask), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(h).mean  # type: ignore[no-any-return]

    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        mean, std = self(h)
        return mean[..., None] + std[..., None] * torch.special.ndtri(levels.to(mean.dtype))
