"""The contract of a forecaster, which turns the past of a series into features of each future step.

Read next: linear.py, the simplest; segments.py; recurrent.py, which forecasts step by step.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

Say = Callable[[Tensor], Tensor]
"""Maps features [B, 1, D] of a step to its value [B, 1], the head's best prediction."""


class Past(NamedTuple):
    """The inputs of a forecast."""

    values: Tensor  # [B, L]
    known: Tensor  # [B, L + H, G] covariates of past and future
    which: Tensor  # [B] int64, the number of the series
    seen: Tensor  # [B, L, C] other channels, with unknown future


class Forecaster(nn.Module, ABC):
    """Reads L values and predicts H more.

    Args:
        lookback: L.
        horizon: H.
        known_size: G.
        num_series: number of series, for forecasters with parameters per series.
        seen_size: C.

    Attributes:
        size: D, features of a step.

    Example:
        >>> import torch
        >>> from weft.nn import LinearForecaster
        >>> from weft.nn.forecasters.forecaster import Past
        >>> none = torch.zeros(3, 12, 0)  # no covariates
        >>> past = Past(torch.zeros(3, 8), none, torch.zeros(3).long(), none[:, :8])
        >>> LinearForecaster(8, 4)(past, lambda features: features[..., 0]).shape  # [B, H, D]
        torch.Size([3, 4, 4])
    """

    size: int

    @abstractmethod
    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        """Features [B, H, D].

        Args:
            past: see Past.
            say: maps features to a value, for forecasters that feed back their own values.
            future: [B, H] true values for teacher forcing; None to feed back own values.
            true: [B, H] bool, where to feed values of `future`; None for everywhere.
        """
