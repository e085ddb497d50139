"""Quantiles calibrated on the validation part: conformal prediction, for point forecasters too.

Read next: model.py, whose quantiles are corrected.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.windows import SeriesWindows
from weft.nn.forecasters.forecaster import Past
from weft.tasks.forecast.ensemble import ForecastEnsemble
from weft.tasks.forecast.model import ROWS, ForecastNetwork, tensors


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
