"""A forecaster as one graph: the newest values of series to the next ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.forecasters.forecaster import Past
from weft.tasks.exported import Exported, Graph
from weft.tasks.forecast.model import Forecast
from weft.tasks.predictor import Answer

if TYPE_CHECKING:
    from weft.tasks.forecast.ready import ForecastReady

SEED = 1


class Best(nn.Module):
    """Scaled values and the number of each series to the forecast."""

    def __init__(self, model: Forecast, horizon: int) -> None:
        super().__init__()
        self.model = model
        self.horizon = horizon

    def forward(self, values: Tensor, which: Tensor) -> Tensor:
        """[B, L] and [B] int64 to [B, H]."""
        rows, lookback = values.shape
        known = values.new_zeros(rows, lookback + self.horizon, 0)
        return self.model.best(Past(values, known, which, values.new_zeros(rows, lookback, 0)))


def exported(ready: "ForecastReady", model: nn.Module) -> Exported:
    """See ../exported.py.

    Raises:
        ConfigError: the model reads more than plain numbers.
    """
    assert isinstance(model, Forecast)
    data, about = ready.data, ready.about
    more = [name for name in ("calendar", "known", "past") if getattr(data, name)]
    more += ["inputs"] if about.get("channels") else []
    if more:
        raise ConfigError(
            f"data: {more[0]}: the exported program reads the numbers of one series only; train without it, "
            "or serve the run with weft serve"
        )
    draw = torch.Generator().manual_seed(SEED)
    both = [
        {
            "values": torch.randn(rows, data.lookback, generator=draw),
            "which": torch.randint(len(about["names"]), (rows,), generator=draw),
        }
        for rows in (2, 3)
    ]
    settings: dict[str, Any] = {
        "kind": "forecaster",
        "lookback": data.lookback,
        "horizon": data.horizon,
        "names": list(about["names"]),
        "mean": list(map(float, about["mean"])),
        "std": list(map(float, about["std"])),
    }
    graph = Graph("forecast_values", Best(model, data.horizon), (both[0], both[1]), ["best"])
    return Exported(
        [graph],
        settings,
        {},
        lambda count: _examples(ready, count),
        program="series",
        shown=_shown,
        same=_close,
    )


def _examples(ready: "ForecastReady", count: int) -> Sequence[Sequence[float]]:
    """Waves with noise at the scale of the first series."""
    draw, rows = np.random.default_rng(SEED), ready.data.lookback + 7
    mean, std = ready.about["mean"][0], ready.about["std"][0]
    waves = np.sin(np.arange(rows) * draw.uniform(0.05, 1.0, (count, 1))) + draw.normal(0, 0.3, (count, rows))
    return [[float(value) for value in row] for row in waves * std + mean]


def _shown(answer: Answer) -> str:
    numbers: Any = answer.json()
    return " ".join(f"{value:.6g}" for value in numbers)


def _close(ours: str, theirs: str) -> bool:
    """Equal to four digits of the largest."""
    a, b = (np.array(text.split(), np.float64) for text in (ours, theirs))
    return a.shape == b.shape and bool(np.abs(a - b).max() <= 1e-4 * np.abs(a).max())
