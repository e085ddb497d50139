"""A recipe's section `model` for forecasts, the model that it builds, and windows as its input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.windows import SeriesWindows
from weft.errors import ConfigError
from weft.nn.forecasters.forecaster import Forecaster, Past
from weft.nn.forecasters.segments import SegmentForecaster
from weft.nn.heads.head import Head, Loss, RealHead
from weft.nn.heads.point import Point
from weft.nn.randomness import for_rows, open_generator

Normalise = Literal["last", "mean", "mean_std", "none"]
Base = Literal["none", "linear", "level"]


class SeriesBatch(NamedTuple):
    """Scaled windows of series."""

    past: Past
    future: Tensor  # [B, H], 0 where missing
    mask: Tensor  # [B, H] bool, True where a value was measured
    target_tokens: int

    def to(self, device: torch.device) -> "SeriesBatch":
        """The same batch on a device."""
        past = Past(*(part.to(device) for part in self.past))
        return SeriesBatch(past, self.future.to(device), self.mask.to(device), self.target_tokens)

    def rows(self, chosen: slice) -> "SeriesBatch":
        """Some windows of the batch."""
        mask = self.mask[chosen]
        past = Past(*(part[chosen] for part in self.past))
        return SeriesBatch(past, self.future[chosen], mask, int(mask.sum()))


class ForecastNetwork(nn.Module):
    """A forecaster and a head, on windows that are normalised first.

    Args:
        forecaster: maps the past to features of the future.
        head: maps features to numbers.
        normalise: what is subtracted from a window and added back: its last value, its mean, its mean after
            which it is divided by its scale, or nothing.
        base: [L, H] of a closed-form forecaster whose residuals are learnt; None to learn the values.
        level: that forecaster also reads the level, the last value of a window.
    """

    base_weight: Tensor | None
    base_spread: Tensor

    def __init__(
        self,
        forecaster: Forecaster,
        head: RealHead,
        *,
        normalise: Normalise,
        base: tuple[int, int] | None = None,
        level: bool = False,
    ) -> None:
        super().__init__()
        self.forecaster = forecaster
        self.head = head
        self.normalise = normalise
        lookback, horizon = base or (0, 0)
        self.register_buffer("base_weight", torch.zeros(lookback + 1 + level, horizon) if base else None)
        self.register_buffer("base_spread", torch.ones(horizon) if base else None)
        if base:
            head.begin_standard()

    def begin_with(self, weight: Tensor, spread: Tensor) -> None:
        """Start as a closed-form forecaster (baseline.py).

        Args:
            weight: [L + 1, H] for windows minus their last value, the constant in the last row; with the
                level [L + 2, H], the level in the row before.
            spread: [H] its root mean squared error at each step ahead.
        """
        assert self.base_weight is not None
        with torch.no_grad():
            self.base_weight.copy_(weight)
            self.base_spread.copy_(spread)

    @property
    def has_quantiles(self) -> bool:
        """Whether the model has quantiles."""
        return self.head.has_quantiles

    def level(self, past: Past) -> tuple[Tensor, Tensor]:
        """What is subtracted and what is divided by, each [B, 1]."""
        return self._level(past.values)

    def _level(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The same for values [B, L, ..], over time, each [B, 1, ..]."""
        one = torch.ones_like(values[:, :1])
        if self.normalise == "last":
            return values[:, -1:], one
        if self.normalise == "none":
            return torch.zeros_like(one), one
        mean = values.mean(1, keepdim=True)
        if self.normalise == "mean":
            return mean, one
        return mean, (values.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()

    def features(
        self, past: Past, future: Tensor | None = None, true: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """h [B, H, D], and the offset and the scale of the head's numbers, [B or 1, 1 or H] each."""
        level, scale = self.level(past)
        leveled = past._replace(values=(past.values - level) / scale)
        if past.seen.shape[2]:  # each channel is normalised by its own level
            middle, spread = self._level(past.seen)
            leveled = leveled._replace(seen=(past.seen - middle) / spread)
        if self.base_weight is not None:
            level, scale = self._base(past.values, self.base_weight)
        fed = None if future is None else (future - level) / scale
        return self.forecaster(leveled, self._step_value, fed, true), level, scale

    def _base(self, values: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The closed-form forecast [B, H] and its root mean squared error [1, H]."""
        last = values[:, -1:]
        with torch.autocast(values.device.type, enabled=False):
            lookback = values.shape[1]
            forecast = (values - last).float() @ weight[:lookback] + weight[-1] + last
            if len(weight) > lookback + 1:
                forecast = forecast + last.float() * weight[lookback]
        return forecast, self.base_spread[None]

    def loss(self, batch: SeriesBatch, *, feeding: float = 1.0, per_sequence: bool = False) -> Loss:
        """The head's loss on the measured values, after normalising.

        Args:
            batch: windows.
            feeding: the probability of feeding a true value to an autoregressive forecaster.
            per_sequence: draw once per window.
        """
        true = None
        if feeding < 1:
            columns = 1 if per_sequence else batch.future.shape[1]
            drawn = for_rows(
                lambda shape: torch.rand(shape, generator=open_generator()), (len(batch.future), columns)
            )
            draw = drawn < feeding
            true = draw.to(batch.future.device).expand(batch.future.shape)
        h, level, scale = self.features(batch.past, batch.future, true)
        return self.head.loss(h, (batch.future - level) / scale, batch.mask)

    def best(self, past: Past) -> Tensor:
        """The forecast [B, H], in the scale of the series."""
        h, level, scale = self.features(past)
        return self.head.best(h, torch.ones_like(h[..., 0], dtype=torch.bool)) * scale + level

    def quantiles(self, past: Past, levels: Tensor) -> Tensor:
        """Quantiles [B, H, Q] of the forecast; an autoregressive forecaster is fed its means."""
        h, level, scale = self.features(past)
        return self.head.quantiles(h, levels) * scale[..., None] + level[..., None]

    def _step_value(self, h: Tensor) -> Tensor:
        return self.head.best(h, torch.ones_like(h[..., 0], dtype=torch.bool))


@dataclass(frozen=True, kw_only=True)
class ForecastModel:
    """The choice of forecaster and head.

    Args:
        forecaster: a part of nn/forecasters.
        head: a head for numbers: point, normal, student or quantile.
        normalise: what is subtracted from each window: last (its last value), mean, mean_std, none.
        base: `linear` starts from the best closed-form forecaster (ridge regression, last season, last value
            or a mixture) and learns its residuals; `level` also tries ridge regression on the level (for
            series that return to their mean) and without a constant (for series without drift), and takes
            them if they are proven better on later stretches of the training part and on the validation
            part; `none` learns the values.
    """

    forecaster: Callable[..., Forecaster] = SegmentForecaster
    head: Callable[..., Head] = Point
    normalise: Normalise = "last"
    base: Base = "none"

    def build(
        self, lookback: int, horizon: int, known_size: int, num_series: int, seen_size: int = 0
    ) -> ForecastNetwork:
        """A new model.

        Raises:
            ConfigError: the parts do not fit together, or the head is not for numbers.
        """
        forecaster = self.forecaster(lookback, horizon, known_size, num_series, seen_size)
        head = self.head(forecaster.size)
        if not isinstance(head, RealHead):
            raise ConfigError("head: expected point, normal, student or quantile for a forecast")
        base = None if self.base == "none" else (lookback, horizon)
        level = self.base == "level"
        return ForecastNetwork(forecaster, head, normalise=self.normalise, base=base, level=level)


ROWS = 512  # windows per step


def tensors(windows: SeriesWindows, chosen: np.ndarray, device: torch.device) -> tuple[Past, np.ndarray]:
    """The model's inputs for some windows, and their futures [B, H], NaN where missing."""
    past, future, known = windows.take(chosen)
    which = torch.from_numpy(windows.numbers[chosen[:, 0]])
    seen = torch.from_numpy(windows.seen(chosen)).float()
    parts = torch.from_numpy(past).float(), torch.from_numpy(known).float(), which, seen
    return Past(*(part.to(device) for part in parts)), future
