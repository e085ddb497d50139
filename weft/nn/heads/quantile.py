"""Quantile regression: several quantiles at each position, without assuming a distribution."""

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from weft.errors import ConfigError
from weft.masks import or_all, positions, summed
from weft.nn.heads.head import Loss, RealHead
from weft.nn.ops import Linear
from weft.shapes import check_choice

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)

Single = Literal["median", "mean"]


class Quantile(RealHead):
    """q_1 = w_1 h + b_1 and q_k = q_{k-1} + softplus(w_k h + b_k), so quantiles never cross.

    The biases are initialised to the quantiles of the standard normal distribution, which matches scaled
    series.

    Args:
        in_size: D, features of h.
        levels: increasing, between 0 and 1, including 0.5.
        best: the point forecast: the median, or a separate mean trained with squared error.

    Raises:
        ConfigError: the levels are not increasing or lack 0.5, or `best` is unknown.

    Source: Koenker & Bassett 1978; Wen et al. 2017 (MQ-RNN).

    Example:
        >>> import torch
        >>> quantiles = Quantile(5, levels=(0.1, 0.5, 0.9))(torch.zeros(2, 3, 5))  # [B, T, K]
        >>> quantiles.shape, bool((quantiles.diff(dim=-1) > 0).all())
        (torch.Size([2, 3, 3]), True)
    """

    def __init__(self, in_size: int, *, levels: tuple[float, ...] = LEVELS, best: Single = "median") -> None:
        super().__init__(in_size=in_size)
        check_choice("best", best, Single)
        if list(levels) != sorted(set(levels)) or not all(0 < one < 1 for one in levels):
            raise ConfigError(f"levels: expected rising numbers between 0 and 1, got {list(levels)}")
        if 0.5 not in levels:
            raise ConfigError(f"levels: expected 0.5 (the median) to be among them, got {list(levels)}")
        self.levels, self.single = levels, best
        mean = [0.0] if best == "mean" else []
        self.weight = Linear(in_size, len(levels) + len(mean))
        begin = [NormalDist().inv_cdf(level) for level in levels]
        gaps = [right - left for left, right in pairwise(begin)]
        with torch.no_grad():
            between = [math.log(math.expm1(gap)) for gap in gaps]
            self.weight.bias.copy_(torch.tensor([begin[0], *between, *mean]))

    def forward(self, h: Tensor) -> Tensor:
        """[.., D] to increasing quantiles [.., Q], in at least float32."""
        return self._both(h)[0]

    def _both(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Quantiles [.., Q] and the point forecast [..]."""
        all_ = self.weight(h)
        all_ = all_.to(torch.promote_types(all_.dtype, torch.float32))
        count = len(self.levels)
        q = torch.cat([all_[..., :1], functional.softplus(all_[..., 1:count])], -1).cumsum(-1)
        return q, all_[..., count] if self.single == "mean" else q[..., self.levels.index(0.5)]

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """Pinball loss, 2 Σ_k max(τ_k e_k, (τ_k - 1) e_k) / Q with e = y - q: |e| for the median only.

        With a separate mean, its squared error is added.
        """
        mask = or_all(mask, target)
        q, single = self._both(positions(h, mask))
        levels = torch.cat([q.new_full((1,), level) for level in self.levels])
        error = positions(target, mask).to(q.dtype)[..., None] - q
        total = summed(torch.maximum(levels * error, (levels - 1) * error), mask)
        total = total * (2 / len(self.levels))
        if self.single == "mean":
            total = total + summed((single - positions(target, mask).to(q.dtype)).square(), mask)
        return Loss(total, mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """The median, or the mean."""
        return self._both(h)[1]

    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        """See RealHead.quantiles; interpolates linearly between the trained levels.

        Raises:
            ConfigError: a level is outside the trained range.
        """
        q, known = self(h), torch.tensor(self.levels, dtype=torch.float64)
        wanted = levels.double().cpu()
        if wanted.min() < known[0] - 1e-9 or wanted.max() > known[-1] + 1e-9:
            raise ConfigError(
                f"levels: expected {self.levels[0]:g} to {self.levels[-1]:g}, which this model learnt, "
                f"got {float(wanted.min()):g} to {float(wanted.max()):g}"
            )
        right = torch.searchsorted(known, wanted).clamp(1, len(known) - 1)
        share = ((wanted - known[right - 1]) / (known[right] - known[right - 1])).clamp(0, 1)
        share, right = share.to(q.device, q.dtype), right.to(q.device)
        return q[..., right - 1] * (1 - share) + q[..., right] * share
