"""SegRNN: a recurrent network over segments of the past, which predicts all future segments in parallel."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell, made
from weft.nn.cells.gru import GRU
from weft.nn.forecasters.forecaster import Forecaster, Past, Say
from weft.nn.ops import Dropout, Linear
from weft.setting_types import DropoutRate, Size
from weft.tree import fan

LONGEST = 48  # maximum default segment length, in steps


class SegmentForecaster(Forecaster):
    """A cell reads segments of w past values, each projected to a vector. From its last state, one step per
    future segment follows, whose input is the segment's number and the series' vector.

    Args:
        lookback, horizon, known_size, num_series, seen_size: see Forecaster.
        segment: w; must divide lookback and horizon. 0 for the longest such w up to LONGEST.
        hidden: size of the cell.
        cell: the recurrence.
        size: D, features of each step.
        dropout: before the last projection.

    Raises:
        ConfigError: the segment does not divide lookback and horizon.

    Source: Lin et al. 2023, SegRNN, with parallel multi-step forecasting. Known covariates, which are not
    in the paper, are inputs of past and future segments, other channels of past segments only.

    Example:
        >>> import torch
        >>> from weft.nn.forecasters.forecaster import Past
        >>> values, none = torch.zeros(3, 8), torch.zeros(3, 12, 0)  # 8 values, no covariates
        >>> past = Past(values, none, torch.zeros(3).long(), none[:, :8])
        >>> forecaster = SegmentForecaster(8, 4, segment=2, hidden=6)  # L = 8 values to H = 4
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
        segment: int = 0,
        hidden: int = 256,
        cell: Callable[[int, int], Cell] = GRU,
        size: Size = 1,
        dropout: DropoutRate = 0.1,
    ) -> None:
        super().__init__()
        both = math.gcd(lookback, horizon)
        segment = segment or max(w for w in range(1, min(both, LONGEST) + 1) if both % w == 0)
        if lookback % segment or horizon % segment:
            raise ConfigError(
                f"segment: expected a divisor of lookback {lookback} and horizon {horizon}, got {segment}"
            )
        self.segment, self.size, self.horizon = segment, size, horizon
        self.read = Linear(segment * (1 + known_size + seen_size), hidden)
        self.cell = made(cell, hidden, hidden)
        self.place = nn.Parameter(torch.randn(horizon // segment, hidden // 2) * 0.02)
        self.series = nn.Parameter(torch.randn(num_series, hidden - hidden // 2) * 0.02)
        self.of_known = Linear(segment * known_size, hidden, bias=False) if known_size else None
        self.write = nn.Sequential(Dropout(dropout), Linear(hidden, segment * size))

    def forward(
        self, past: Past, say: Say, future: Tensor | None = None, true: Tensor | None = None
    ) -> Tensor:
        rows, lookback = past.values.shape
        x = torch.cat([past.values[..., None], past.known[:, :lookback], past.seen], -1)
        x = torch.relu(self.read(x.reshape(rows, lookback // self.segment, -1)))
        _, state = self.cell(x, self.cell.start(x[:, 0]))
        steps = len(self.place)
        inputs = torch.cat(
            [
                self.place[None].expand(rows, -1, -1),
                self.series[past.which][:, None].expand(-1, steps, -1),
            ],
            -1,
        )
        if self.of_known is not None:
            ahead = past.known[:, lookback:].reshape(rows, steps, -1)
            inputs = inputs + self.of_known(ahead)
        # Treat each future segment as a row: one step of the cell from the same state.
        spread = fan(state, steps)
        y, _ = self.cell.step(inputs.reshape(rows * steps, -1), spread)
        h: Tensor = self.write(y)
        return h.view(rows, self.horizon, self.size)
