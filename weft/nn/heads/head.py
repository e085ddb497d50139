"""The contract of a head: it turns features into a prediction and computes the loss of targets.

Read next: categorical.py for classes; normal.py for numbers.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.ops import Linear, Output


class Loss(NamedTuple):
    """A sum and a count; the training loop divides once, over all parts of a batch."""

    total: Tensor  # [] nats
    count: Tensor  # type: ignore[assignment]  # [] number of targets without padding; shadows tuple.count

    @property
    def mean(self) -> Tensor:
        """Mean nats per target; zero without targets."""
        return self.total / self.count.clamp(min=1)


class Head(nn.Module, ABC):
    """The last layer of a model.

    Args:
        in_size: D, features of the input.

    Attributes:
        copies: whether its input h is a copying decoder's tree of [B, T, ..] (pointer.py).
    """

    copies: ClassVar[bool] = False

    @abstractmethod
    def forward(self, h: Any) -> Any:
        """Features h [..., D] to the prediction, for a categorical head log-probabilities [..., V]."""

    @abstractmethod
    def loss(self, h: Any, target: Tensor, mask: Tensor) -> Loss:
        """Loss of targets [B, T] given h [B, T, D], where mask [B, T] is True."""

    @abstractmethod
    def best(self, h: Any, mask: Tensor) -> Tensor:
        """The most probable prediction, [B, T]."""

    def marginals(self, h: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities of each class at each position, [B, T, C], given the rows' real positions."""
        return self(h)  # type: ignore[no-any-return]

    def output(self) -> Output | None:
        """The weights of log softmax(W h + b), for compiled searches; None if it is another function."""
        return None


class RealHead(Head):
    """Predicts a number at each position; `best` is its mean or median.

    Args:
        in_size: D, features of the input.

    Attributes:
        has_quantiles: whether it predicts quantiles.
    """

    has_quantiles: ClassVar[bool] = True
    weight: Linear

    def begin_standard(self) -> None:
        """Initialise so that the prediction is 0 or standard normal for every h."""
        with torch.no_grad():
            self.weight.weight.zero_()

    @abstractmethod
    def quantiles(self, h: Tensor, levels: Tensor) -> Tensor:
        """The quantiles at the given levels.

        Args:
            h: [B, T, D].
            levels: [Q], each between 0 and 1.

        Returns:
            [B, T, Q], increasing with the levels.

        Raises:
            ConfigError: this head has no quantiles.
        """
