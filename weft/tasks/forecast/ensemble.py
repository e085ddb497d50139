"""Forecasters around trained ones: an average of several, and quantiles calibrated on validation data.

Read next: model.py; task.py, which opens the runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.windows import SeriesWindows
from weft.errors import ConfigError
from weft.nn.forecasters.forecaster import Past
from weft.tasks.forecast.data import SeriesData
from weft.tasks.forecast.model import ROWS, ForecastNetwork, tensors


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
    bases = {one.get("base") for one in (about, other)} - {None}
    if len(bases) > 1:
        raise ConfigError(
            f"its times are in another base ({', '.join(sorted(map(repr, bases)))}); train both alike"
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


class CalibratedForecast(nn.Module):
    """A forecaster whose quantiles are calibrated on the validation part.

    At each step ahead, each quantile is shifted so that its share of the validation values lies below it. For
    a point forecaster, the forecast is shifted for each level. The shares are right as far as the future
    resembles the validation part.

    Args:
        model: in evaluation mode; one, or several together.
        windows: of the training series, with a validation part.

    Source: Romano, Patterson and Candès 2019, "Conformalized quantile regression", here for each level alone.
    """

    has_quantiles = True

    def __init__(self, model: ForecastNetwork | ForecastEnsemble, windows: SeriesWindows) -> None:
        super().__init__()
        self.model = model
        self.windows = windows
        self._known: dict[tuple[float, ...], Tensor] = {}

    def best(self, past: Past) -> Tensor:
        """The forecast [B, H], unchanged."""
        return self.model.best(past)

    def quantiles(self, past: Past, levels: Tensor) -> Tensor:
        """Corrected quantiles [B, H, Q], increasing with the levels."""
        wanted = tuple(levels.tolist())
        if wanted not in self._known:
            self._known[wanted] = self._offsets(levels)
        return (self._raw_quantiles(past, levels) + self._known[wanted]).sort(-1).values

    def _raw_quantiles(self, past: Past, levels: Tensor) -> Tensor:
        if self.model.has_quantiles:
            return self.model.quantiles(past, levels)
        return self.model.best(past)[..., None].expand(-1, -1, len(levels))

    def _offsets(self, levels: Tensor) -> Tensor:
        """[H, Q] the shift that each quantile needs on the validation part."""
        chosen, errors = self.windows.of(1), []
        for at in range(0, len(chosen), ROWS):
            past, future = tensors(self.windows, chosen[at : at + ROWS], levels.device)
            with torch.no_grad():
                errors.append(future[..., None] - self._raw_quantiles(past, levels).double().cpu().numpy())
        found = conformal(np.concatenate(errors), levels.tolist())
        return torch.from_numpy(found).to(levels.device, levels.dtype)


def conformal(errors: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """[H, Q] the errors' quantile for each level, with the finite-sample correction.

    Args:
        errors: [N, H, Q] values minus their quantiles, NaN where values are missing.
        levels: [Q].

    Example:
        >>> conformal(np.arange(9.0).reshape(9, 1, 1), [0.8])  # 8 of 9 + 1 values lie below
        array([[7.]])
    """
    found = np.zeros(errors.shape[1:])
    for step in range(errors.shape[1]):
        for at, level in enumerate(levels):
            values = np.sort(errors[:, step, at][np.isfinite(errors[:, step, at])])
            if not len(values):
                continue
            more = len(values) + 1
            rank = np.ceil(more * level - 1e-9) if level >= 0.5 else np.floor(more * level + 1e-9)
            found[step, at] = values[int(np.clip(rank, 1, len(values))) - 1]
    return found
