"""Errors of forecasts in the units of the data: over all series, for each series, and for the baselines."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from weft.data.windows import Windows
from weft.metrics.forecasts import SUMS, Blocks, gathered, naive_error, scores, sums
from weft.metrics.scored import Scored
from weft.metrics.series import Baselines
from weft.tasks.forecast.calibration import Calibrated
from weft.tasks.forecast.ensemble import Together
from weft.tasks.forecast.model import Forecast
from weft.tasks.forecast.tensors import ROWS, tensors

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
SHOWN = 10  # series whose errors are printed


class InUnits(NamedTuple):
    """Scores in the units of the data.

    Fields:
        scored: over all series, with intervals and baselines.
        series: the value of each score, for each series by name.
    """

    scored: list[Scored]
    series: Mapping[str, Mapping[str, float]]

    def lines(self) -> list[str]:
        """A line for each of the first series."""
        if len(self.series) < 2:
            return []
        found = [
            f"  {name}: " + ", ".join(f"{key} {value:.4g}" for key, value in own.items())
            for name, own in list(self.series.items())[:SHOWN]
        ]
        rest = len(self.series) - SHOWN
        return [*found, f"  and {rest:,} more series, see --json"] if rest > 0 else found


def in_units(
    model: Forecast | Together | Calibrated,
    windows: Windows,
    chosen: np.ndarray,
    *,
    blocks: Blocks,
    season: int,
    baselines: Baselines,
    levels: Sequence[float],
) -> InUnits:
    """Score a model and the baselines on some windows.

    Args:
        model: in evaluation mode.
        windows: of the series.
        chosen: [N, 2] the windows to score.
        blocks: the block of each window, for intervals.
        season: rows per season, for MASE.
        baselines: functions from pasts to forecasts, in the scale of the training part.
        levels: of the quantiles, if the model has any.
    """
    device = next(model.parameters()).device
    levels = levels if model.has_quantiles else ()
    naive = np.array([naive_error(windows.training_values(n), season) for n in range(len(windows.names))])
    own: list[np.ndarray] = []
    others = {name: np.zeros(len(SUMS)) for name in baselines}
    for at in range(0, len(chosen), ROWS):
        part = chosen[at : at + ROWS]
        past, future = tensors(windows, part, device)
        mean, std = (side[part[:, 0]][:, None] for side in windows.scale)
        came, scale = future * std + mean, naive[part[:, 0]]
        q = None
        with torch.no_grad():
            best = model.best(past).double().cpu().numpy() * std + mean
            if levels:
                q = model.quantiles(past, torch.tensor(levels, device=device)).double().cpu().numpy()
                q = q * std[..., None] + mean[..., None]
        own.append(sums(best, came, scale, q, levels))
        before = windows.take(part)[0]
        for name, forecast in baselines.items():
            others[name] += sums(forecast(before) * std + mean, came, scale).sum(0)
    each = np.concatenate(own)
    about = f"windows:{len(chosen)}|none dropped|{blocks.about}"
    by_series = {}
    for number, total in enumerate(gathered(each, chosen[:, 0])):
        if total[SUMS.index("values")]:
            found = scores(total[None], {}, season=season, levels=levels, about=about)
            by_series[windows.names[number]] = {one.score.name: one.value for one in found}
    whole = gathered(each, blocks.numbers)
    return InUnits(scores(whole, others, season=season, levels=levels, about=about), by_series)
