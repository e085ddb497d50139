"""The contract of a head: it turns features into a prediction and computes the loss of targets.

Read next: categorical.py for classes; normal.py for numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.border import Explained, check_device, check_mask, check_tensor, weight_of
from weft.nn.ops import Linear, Output


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
        """The quantiles at the given levels.

        Args:
            h: [B, T, D].
            levels: [Q], each between 0 and 1.

        Returns:
            [B, T, Q], increasing with the levels.

        Raises:
            ConfigError: this head has no quantiles.
        """
