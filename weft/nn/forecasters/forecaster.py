"""The contract of a forecaster, which turns the past of a series into features of each future step.

Three are here: a weighted sum of the past (with a separate trend DLinear), any encoder with any decoder, and
a recurrence in which each step reads the previous value. Read next: segments.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import pad

from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.ops import Linear
from weft.nn.recurrent import Cells, Stack
from weft.setting_types import DropoutRate, Size, Sizes
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


class PairForecaster(Forecaster):
    """The encoder-decoder of translation, on numbers; the decoder starts from the last observation.

    Other channels are inputs of the encoder only.

    Args:
        lookback, horizon, known_size, num_series, seen_size: see Forecaster.
        encoder, decoder: any encoder and decoder.

    Source: Bahdanau et al. 2014; Salinas et al. 2020 for feeding back values.

    Example:
        >>> import torch
        >>> from weft.nn.forecasters.forecaster import Past
        >>> none = torch.zeros(3, 12, 0)  # no covariates
        >>> past = Past(torch.zeros(3, 8), none, torch.zeros(3).long(), none[:, :8])
        >>> PairForecaster(8, 4)(past, lambda features: features[..., 0]).shape  # [B, H, D]
        torch.Size([3, 4, 256])
    """

    def __init__(
        self,
        lookback: int,
        horizon: int,
        known_size: int = 0,
        num_series: int = 1,
        seen_size: int = 0,
        *,
        encoder: Callable[..., Encoder] = RecurrentEncoder,
        decoder: Callable[..., Decoder] = RecurrentDecoder,
    ) -> None:
        super().__init__()
        self.encoder = encoder(1 + known_size + seen_size)
        self.decoder = decoder(1 + known_size, self.encoder)
        self.size = self.decoder.size

    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        rows, lookback = past.values.shape
        x = torch.cat([past.values[..., None], past.known[:, :lookback], past.seen], -1)
        mask = torch.ones(rows, lookback, dtype=torch.bool, device=x.device)
        state = self.decoder.start(self.encoder(x, mask), rows)
        return write(self.decoder, state, past, say, future, true)


class RecurrentForecaster(Forecaster):
    """h_t = cell([x_{t-1}; covariates of t], h_{t-1}), over the past and then the future.

    In training the true values are fed (one call over all steps), in use the forecaster's own. With
    `cell: stepwise` only the previous value is fed back, as in Jordan's network with teacher forcing;
    with elman it is a plain recurrent network; with jordan the cell's hidden outputs are fed back too. Other
    channels are read one step late, like the value, and are 0 where unknown.

    Args:
        lookback, horizon, known_size, num_series, seen_size: see Forecaster.
        sizes: of the layers.
        cell: the recurrence.
        dropout: after every layer.

    Example:
        >>> import torch
        >>> from weft.nn.forecasters.forecaster import Past
        >>> values, none = torch.zeros(3, 8), torch.zeros(3, 12, 0)  # 8 values, no covariates
        >>> past = Past(values, none, torch.zeros(3).long(), none[:, :8])
        >>> forecaster = RecurrentForecaster(8, 4, sizes=(6,))  # L = 8 values to H = 4
        >>> forecaster(past, lambda features: features[..., 0]).shape  # [B, H, D]
        torch.Size([3, 4, 6])
    """

    def __init__(
        self,
        lookback: int,
        horizon: int,
        known_size: int = 0,
        num_series: int = 1,
        seen_size: int = 0,
        *,
        sizes: Sizes = (64,),
        cell: Cells = LSTM,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        self.horizon = horizon
        self.stack = Stack(1 + known_size + seen_size, sizes, cell=cell, dropout=dropout)
        self.size = self.stack.size

    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        lookback = past.values.shape[1]
        late = pad(past.seen, (0, 0, 1, self.horizon - 1))  # [B, L + H, C] channels at the previous time
        past = past._replace(known=torch.cat([past.known, late], -1))
        # The input at each time is the previous value and the current covariates.
        x = torch.cat([past.values[:, :-1, None], past.known[:, 1:lookback]], -1)
        _, finals = self.stack(x)
        state = tuple(layer[0] for layer in finals)

        def step(inputs: Tensor, layers: tuple) -> tuple[Tensor, tuple]:
            h, finals = self.stack(inputs, layers)
            return h, tuple(layer[0] for layer in finals)

        return write(step, state, past, say, future, true)
