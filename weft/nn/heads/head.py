"""The contract of a head: features become a prediction, and a target makes a loss.

Read next: categorical.py, classes; normal.py, numbers.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.kernels.linear import Linear


class Loss(NamedTuple):
    """A sum and what it was summed over; the training loop divides once, over everything it gathered."""

    total: Tensor  # [] nats
    count: Tensor  # type: ignore[assignment]  # [] real targets; shadows tuple.count

    @property
    def mean(self) -> Tensor:
        """Nats a real target; zero where there is none."""
        return self.total / self.count.clamp(min=1)


class Head(nn.Module, ABC):
    """The last layer.

    Args:
        in_size: D, features of what it reads.

    Attributes:
        copies: whether it reads what a decoder that copies gives, a tree of [B, T, ..] for h (pointer.py).
    """

    copies: ClassVar[bool] = False

    @abstractmethod
    def forward(self, h: Any) -> Any:
        """h [..., D] to the prediction: log-probabilities [..., V] of a categorical head."""

    @abstractmethod
    def loss(self, h: Any, target: Tensor, mask: Tensor) -> Loss:
        """h [B, T, D] against target [B, T] where mask [B, T] is True."""

    @abstractmethod
    def best(self, h: Any, mask: Tensor) -> Tensor:
        """The most probable prediction, [B, T]."""


class RealHead(Head):
    """One number at each position; best is its mean or median.

    Args:
        in_size: D, features of what it reads.

    Attributes:
        has_quantiles: whether it says how sure it is.
    """

    has_quantiles: ClassVar[bool] = True
    weight: Linear

    def begin_standard(self) -> None:
        """Begin with 0, or with the standard normal distribution, whatever h is."""
        with torch.no_grad():
            self.weight.weight.zero_()

    @abstractmethod
    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        """The values that are exceeded with probability 1 - level.

        Args:
            h: [B, T, D].
            levels: [Q], each between 0 and 1.

        Returns:
            [B, T, Q], rising with the levels.

        Raises:
            ConfigError: this head says nothing of how sure it is.
        """
