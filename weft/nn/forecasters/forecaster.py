"""The contract of a forecaster: the past of a series becomes features of each step of its future.

Read next: linear.py, the plainest; segments.py; recurrent.py, which writes one step after the other.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

Say = Callable[[Tensor], Tensor]
"""Features [B, 1, D] of a step to its value [B, 1]: what a head calls its best."""


class Past(NamedTuple):
    """What is known when a forecast begins."""

    values: Tensor  # [B, L]
    known: Tensor  # [B, L + H, G] covariates of past and future
    which: Tensor  # [B] int64, the number of the series
    seen: Tensor  # [B, L, C] other channels, whose future is not known


class Forecaster(nn.Module, ABC):
    """Reads L values, says something of H more.

    Args:
        lookback: L.
        horizon: H.
        known_size: G.
        num_series: how many series there are, for those who tell them apart.
        seen_size: C.

    Attributes:
        size: D, features of a step.
    """

    size: int

    @abstractmethod
    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        """Features [B, H, D].

        Args:
            past: see Past.
            say: turns features into a value, for those who feed their own values back.
            future: [B, H] true values, fed back in training (teacher forcing); None to feed one's own.
            true: [B, H] bool, where of `future` the true value is fed; all of it where None.
        """
