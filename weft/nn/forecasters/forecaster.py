"""The contract of a forecaster, which turns the past of a series into features of each future step.

Read next: linear.py, the simplest; segments.py; recurrent.py, which forecasts step by step.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.tree import State

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


Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""Maps inputs [B, T, 1 + G] and a state to features [B, T, D] and the next state."""


def write(
    step: Step, state: State, past: Past, say: Say, future: Tensor | None, true: Tensor | None
) -> Tensor:
    """Features of the H future steps; each step reads the previous value and the current covariates."""
    ahead = past.known[:, past.values.shape[1] :]  # [B, H, G]
    value = past.values[:, -1:]  # [B, 1]: forecasts start from the last observation
    if future is not None and true is None:
        before = torch.cat([value, future[:, :-1]], 1)
        return step(torch.cat([before[..., None], ahead], -1), state)[0]
    hs = []
    for t in range(ahead.shape[1]):
        h, state = step(torch.cat([value[..., None], ahead[:, t : t + 1]], -1), state)
        hs.append(h)
        value = say(h).detach().to(value.dtype)
        if future is not None and true is not None:
            value = torch.where(true[:, t : t + 1], future[:, t : t + 1], value)
    return torch.cat(hs, 1)
