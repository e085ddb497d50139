"""Several trained forecasters as one: their forecasts are averaged.

Read next: model.py; task.py, which opens the runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.forecasters.forecaster import Past
from weft.tasks.forecast.data import SeriesData
from weft.tasks.forecast.model import ForecastNetwork


class ForecastEnsemble(nn.Module):
    """The mean of several forecasts, and the mean of each quantile (unlike the quantiles of a mixture).

    Args:
        members: in evaluation mode, of the same series and horizon.
        lookbacks: rows that each member reads; no member may read more than the first one.

    Source: Lichtendahl, Grushka-Cockayne and Winkler 2013 (averaging quantiles).
    """

    def __init__(self, members: Sequence[ForecastNetwork], lookbacks: Sequence[int]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self._members = tuple(members)  # the same objects with their own type
        self.lookbacks = tuple(lookbacks)

    @property
    def has_quantiles(self) -> bool:
        """Whether all members have quantiles."""
        return all(member.has_quantiles for member in self._members)

    def best(self, past: Past) -> Tensor:
        """The mean forecast [B, H], in the scale of the series."""
        return torch.stack([member.best(read) for member, read in self._read(past)]).mean(0)

    def quantiles(self, past: Past, levels: Tensor) -> Tensor:
        """The mean of each quantile, [B, H, Q].

        Raises:
            ConfigError: a member has no quantiles.
        """
        return torch.stack([member.quantiles(read, levels) for member, read in self._read(past)]).mean(0)

    def _read(self, past: Past) -> list[tuple[ForecastNetwork, Past]]:
        """Each member and the part of the past that it reads."""
        first = [self.lookbacks[0] - lookback for lookback in self.lookbacks]
        return [
            (member, Past(past.values[:, at:], past.known[:, at:], past.which, past.seen[:, at:]))
            for member, at in zip(self._members, first, strict=True)
        ]


def check_joins(
    about: Mapping[str, Any], data: SeriesData, other: Mapping[str, Any], other_data: SeriesData
) -> None:
    """Check that two runs can forecast together.

    Args:
        about, data: names and scales of the first run's series, and its section `data`.
        other, other_data: the same for the run that joins it.

    Raises:
        ConfigError: the other run forecasts a different number of steps, reads more rows or other columns, or
            was trained on other rows and so has another scale.
    """
    if other_data.horizon != data.horizon:
        raise ConfigError(
            f"expected a horizon of {data.horizon} steps, as in this run, got {other_data.horizon}"
        )
    if other_data.lookback > data.lookback:
        raise ConfigError(
            f"it reads {other_data.lookback} rows, here {data.lookback}; name the run with most rows first"
        )
    if any(getattr(other_data, name) != getattr(data, name) for name in ("known", "past", "calendar")):
        raise ConfigError(
            "it has other covariates (data.known, data.past, data.calendar); an ensemble needs the same"
        )
    for key, what in (
        ("names", "series"),
        ("columns", "columns"),
        ("known", "covariates"),
        ("covariates", "scales of the covariates known ahead"),
        ("channels", "input columns (data.inputs)"),
        ("mean", "training rows, to tell by their mean"),
        ("std", "training rows, to tell by their deviation"),
    ):
        if other.get(key) != about.get(key):
            raise ConfigError(f"it has other {what}; an ensemble needs the same")
