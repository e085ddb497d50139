"""A recurrent forecaster in which each step reads the previous value."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from weft.nn.cells.lstm import LSTM
from weft.nn.forecasters.forecaster import Forecaster, Past, Say, write
from weft.nn.recurrent import Cells, Stack
from weft.setting_types import DropoutRate, Sizes


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
