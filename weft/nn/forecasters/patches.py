"""PatchTST: an encoder over patches of the past, with one linear layer to the whole future."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.forecasters.forecaster import Forecaster, Past, Say
from weft.nn.ops import Dropout, Linear
from weft.setting_types import DropoutRate, Size


class PatchForecaster(Forecaster):
    """Overlapping patches, an encoder over them, and one linear layer from all its states to the future.

    Args:
        lookback, horizon, known_size, num_series, seen_size: see Forecaster.
        encoder: a Transformer by default.
        patch: steps of a patch.
        stride: steps from one patch to the next; the last value is repeated to fill the last patch.
        size: D, features of each step.
        dropout: before the last linear layer.

    Raises:
        ConfigError: the patch is longer than the past, or the stride longer than the patch.

    Source: Nie et al. 2023. Future covariates are added through another linear layer.

    Example:
        >>> import torch
        >>> from weft.nn.forecasters.forecaster import Past
        >>> values, none = torch.zeros(3, 8), torch.zeros(3, 12, 0)  # 8 values, no covariates
        >>> past = Past(values, none, torch.zeros(3).long(), none[:, :8])
        >>> forecaster = PatchForecaster(8, 4, patch=4, stride=2, size=1)  # L = 8 values to H = 4
        >>> forecaster(past, lambda features: features[..., 0]).shape  # [B, H, D]
        torch.Size([3, 4, 1])
    """

    def __init__(
        self,
        lookback: int,
        horizon: int,
        known_size: int = 0,
        num_series: int = 1,
        seen_size: int = 0,
        *,
        encoder: Callable[..., Encoder] = TransformerEncoder,
        patch: int = 16,
        stride: int = 8,
        size: Size = 1,
        dropout: DropoutRate = 0.1,
    ) -> None:
        super().__init__()
        if not 1 <= stride <= patch <= lookback:
            raise ConfigError(
                f"patch: expected 1 <= stride <= patch <= lookback {lookback}, "
                f"got stride {stride} and patch {patch}"
            )
        self.patch, self.stride, self.horizon, self.size = patch, stride, horizon, size
        self.encoder = encoder(patch * (1 + known_size + seen_size))
        count = (lookback + stride - patch) // stride + 1
        self.dropout = Dropout(dropout)
        self.write = Linear(count * self.encoder.size, horizon * size)
        self.of_known = Linear(known_size, size, bias=False) if known_size else None

    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        rows, lookback = past.values.shape
        x = torch.cat([past.values[..., None], past.known[:, :lookback], past.seen], -1)
        x = torch.cat([x, x[:, -1:].expand(-1, self.stride, -1)], 1)
        x = x.unfold(1, self.patch, self.stride).flatten(2)  # [B, P, patch * (1 + G + C)]
        mask = torch.ones(rows, x.shape[1], dtype=torch.bool, device=x.device)
        states = self.encoder(x, mask).states
        h: Tensor = self.write(self.dropout(states.flatten(1))).view(rows, self.horizon, self.size)
        return h if self.of_known is None else h + self.of_known(past.known[:, lookback:])
