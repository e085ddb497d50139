"""Each future step as a weighted sum of the past; with a separate trend this is DLinear."""

import torch
from torch import Tensor
from torch.nn import functional

from weft.nn.forecasters.forecaster import Forecaster, Past, Say
from weft.nn.ops import Linear
from weft.setting_types import Size


class LinearForecaster(Forecaster):
    """y_{t+k} = w_k x + b_k; with `trend`, the moving average and the remainder have separate weights.

    Other channels are added with their own weights.

    Args:
        lookback, horizon, known_size, num_series, seen_size: see Forecaster.
        size: D, features of each step.
        trend: steps of the moving average; 0 for none.

    Source: Zeng et al. 2023 (DLinear, NLinear).

    Example:
        >>> import torch
        >>> from weft.nn.forecasters.forecaster import Past
        >>> values, none = torch.zeros(3, 8), torch.zeros(3, 12, 0)  # 8 values, no covariates
        >>> past = Past(values, none, torch.zeros(3).long(), none[:, :8])
        >>> forecaster = LinearForecaster(8, 4)  # L = 8 values to H = 4
        >>> forecaster(past, lambda features: features[..., 0]).shape  # [B, H, D]
        torch.Size([3, 4, 4])
    """

    def __init__(
        self,
        lookback: int,
        horizon: int,
        known_size: int = 0,
        num_series: int = 1,
        seen_size: int = 0,
        *,
        size: Size = 4,
        trend: int = 0,
    ) -> None:
        super().__init__()
        self.size, self.horizon, self.trend = size, horizon, trend
        self.weight = Linear(lookback, horizon * size)
        self.of_trend = Linear(lookback, horizon * size) if trend else None
        self.of_known = Linear(known_size, size, bias=False) if known_size else None
        self.of_seen = Linear(lookback * seen_size, horizon * size, bias=False) if seen_size else None

    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        x = past.values
        if self.of_trend is None:
            h = self.weight(x)
        else:
            left = (self.trend - 1) // 2
            ends = [x[:, :1].expand(-1, left), x, x[:, -1:].expand(-1, self.trend - 1 - left)]
            trend = functional.avg_pool1d(torch.cat(ends, 1)[:, None], self.trend, 1)[:, 0]
            h = self.weight(x - trend) + self.of_trend(trend)
        if self.of_seen is not None:
            h = h + self.of_seen(past.seen.flatten(1))
        h = h.view(x.shape[0], self.horizon, self.size)
        return h if self.of_known is None else h + self.of_known(past.known[:, -self.horizon :])
