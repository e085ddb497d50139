"""Encoder-decoder forecasting: any encoder reads the past, any decoder predicts the future."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.forecasters.forecaster import Forecaster, Past, Say, write


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
