"""The contract of a head: it turns features into a prediction and computes the loss of targets.

Heads for numbers are here too: a point, quantiles, a Gaussian or a Student t distribution at each position.
Read next: categorical.py, for classes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from statistics import NormalDist
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from weft.errors import ConfigError
from weft.masks import or_all, positions, summed
from weft.nn.border import Explained, check_device, check_mask, check_tensor, weight_of
from weft.nn.ops import Linear, Output
from weft.shapes import check_choice


class Loss(NamedTuple):
    """A sum and a count; the training loop divides once, over all parts of a batch.

    Example:
        >>> import torch
        >>> Loss(torch.tensor(6.0), torch.tensor(3)).mean.item()
        2.0
    """

    total: Tensor  # [] nats
    count: Tensor  # type: ignore[assignment]  # [] number of targets without padding; shadows tuple.count

    @property
    def mean(self) -> Tensor:
        """Mean nats per target; zero without targets."""
        return self.total / self.count.clamp(min=1)


class Head(Explained, nn.Module, ABC):
    """The last layer of a model.

    Args:
        in_size: D, features of the input.

    Attributes:
        copies: whether its input h is a copying decoder's tree of [B, T, ..] (pointer.py).

    Example:
        >>> import torch
        >>> from weft.nn import Categorical
        >>> head, mask = Categorical(5, 7), torch.ones(2, 3) > 0
        >>> loss = head.loss(torch.zeros(2, 3, 5), torch.zeros(2, 3).long(), mask)  # a sum and a count
        >>> int(loss.count), head.best(torch.zeros(2, 3, 5), mask).shape
        (6, torch.Size([2, 3]))
    """

    checks: ClassVar[Mapping[str, str]] = {
        "forward": "check_features",
        "loss": "check_targets",
        "best": "check_masked",
        "marginals": "check_masked",
    }
    returns: ClassVar[Mapping[str, str | type]] = {"loss": Loss, "best": "tensor"}
    copies: ClassVar[bool] = False
    in_size: int

    def __init__(self, *, in_size: int = 0) -> None:
        super().__init__()
        if in_size:
            self.in_size = in_size

    @abstractmethod
    def forward(self, h: Any) -> Any:
        """Features h [..., D] to the prediction, for a categorical head log-probabilities [..., V]."""

    @abstractmethod
    def loss(self, h: Any, target: Tensor, mask: Tensor | None = None) -> Loss:
        """Loss of targets [B, T] given h [B, T, D], where mask [B, T] is True; everywhere without one."""

    @abstractmethod
    def best(self, h: Any, mask: Tensor | None = None) -> Tensor:
        """The most probable prediction, [B, T]."""

    def marginals(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """Log-probabilities of each class at each position, [B, T, C], given the rows' real positions."""
        return self(h)  # type: ignore[no-any-return]

    def check_features(self, h: Any) -> None:
        """Check the input of `forward`."""
        if not self.copies:
            check_tensor(type(self).__name__, "h", h, ("..", self.in_size), weight_of(self))

    def check_masked(self, h: Any, mask: Tensor | None = None) -> None:
        """Check the inputs of `best` and `marginals`."""
        if not self.copies:
            check_tensor(type(self).__name__, "h", h, ("rows", "steps", self.in_size), weight_of(self))
            if mask is not None:
                check_mask(type(self).__name__, mask, h)

    def check_targets(self, h: Any, target: Tensor, mask: Tensor | None = None) -> None:
        """Check the inputs of `loss`."""
        self.check_masked(h, mask)
        of = h if mask is None else mask
        if isinstance(of, Tensor):
            check_tensor(type(self).__name__, "target", target, tuple(of.shape[:2]), real=False)
            check_device(type(self).__name__, "target", target, of.device)

    def output(self) -> Output | None:
        """The weights of log softmax(W h + b), for compiled searches; None if it is another function."""
        return None


class RealHead(Head):
    """Predicts a number at each position; `best` is its mean or median.

    Args:
        in_size: D, features of the input.

    Attributes:
        has_quantiles: whether it predicts quantiles.

    Example:
        >>> import torch
        >>> from weft.nn import Normal
        >>> head, mask = Normal(5), torch.ones(2, 3) > 0
        >>> head.best(torch.zeros(2, 3, 5), mask).shape  # [B, T]
        torch.Size([2, 3])
    """

    has_quantiles: ClassVar[bool] = True
    weight: Linear
    standard: tuple[float, ...] = ()
    """The biases with which the prediction is 0 or standard normal; empty if they are so from the start."""

    def begin_standard(self) -> None:
        """Initialise so that the prediction is 0 or standard normal for every h."""
        with torch.no_grad():
            self.weight.weight.zero_()
            if self.standard:
                self.weight.bias.copy_(torch.tensor(self.standard))

    @abstractmethod
    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        """The quantiles [B, T, Q] of h [B, T, D] at levels [Q] from 0 to 1; they increase with the levels.

        Raises:
            ConfigError: this head has no quantiles.
        """


Error = Literal["squared", "absolute", "huber"]


class Point(RealHead):
    """y = w h + b.

    Args:
        in_size: D, features of h.
        error: squared (which predicts the mean), absolute (the median), or huber (squared up to 1, then
            linear).

    Raises:
        ConfigError: an unknown `error`.

    Example:
        >>> import torch
        >>> head = Point(3)
        >>> head.best(torch.zeros(2, 5, 3), torch.ones(2, 5) > 0).shape
        torch.Size([2, 5])
    """

    has_quantiles: ClassVar[bool] = False
    standard = (0.0,)

    def __init__(self, in_size: int, *, error: Error = "squared") -> None:
        super().__init__(in_size=in_size)
        check_choice("error", error, Error)
        self.error = error
        self.weight = Linear(in_size, 1)

    def forward(self, h: Tensor) -> Tensor:
        """[.., D] to [..]."""
        y: Tensor = self.weight(h)[..., 0]
        return y

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """The error summed over positions without padding, in squared units of the target or in its units."""
        mask = or_all(mask, target)
        y = self(positions(h, mask))
        y = y.to(torch.promote_types(y.dtype, torch.float32))
        want = positions(target, mask).to(y.dtype)
        if self.error == "squared":
            errors = (y - want).square()
        elif self.error == "absolute":
            errors = (y - want).abs()
        else:
            errors = functional.huber_loss(y, want, reduction="none")
        return Loss(summed(errors, mask), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(h)  # type: ignore[no-any-return]

    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        raise ConfigError(
            "a point forecast has no quantiles; train with the head normal, student or quantile"
        )


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
