"""A point forecast without uncertainty: squared, absolute or Huber error."""

from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from weft.errors import ConfigError
from weft.masks import or_all, positions, summed
from weft.nn.heads.head import Loss, RealHead
from weft.nn.ops import Linear
from weft.shapes import check_choice

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
        """Raises an error: there are no quantiles."""
        raise ConfigError(
            "a point forecast has no quantiles; train with the head normal, student or quantile"
        )
