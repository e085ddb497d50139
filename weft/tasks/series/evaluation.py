"""How good forecasts are, beside forecasts that need no model, and where they are wrong."""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from weft.data.windows import Windows
from weft.metrics.floor import beside
from weft.metrics.series import Errors, Ridge, Sums, mean_pinball, repeated, seasonal
from weft.nn.forecasters.forecaster import Past
from weft.tasks.series.model import Forecast
from weft.tasks.series.together import Together

ROWS = 512  # windows at once
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


class ForecastEvaluation(NamedTuple):
    """The errors of a model and of its floors over the same windows."""

    title: str
    model: Errors
    floors: dict[str, Errors]
    windows: int
    pinball: float | None  # mean over LEVELS; None for a point forecast
    coverage: float | None  # share of values between the first and the last of LEVELS
    example: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # past, future, forecast, quantiles

    @property
    def outputs(self) -> list[str]:
        """Step ahead and its squared error, a line each."""
        return [f"{step + 1}\t{error:.6f}" for step, error in enumerate(self.model.by_step)]

    def text(self) -> str:
        """For a reader."""
        lines = [self.title]
        lines.append(
            f"  MSE {self.model.squared:.4f}  MAE {self.model.absolute:.4f} "
            f"(scaled by the training part|windows:{self.windows}|values:{self.model.values}|none dropped)"
        )
        if self.pinball is not None and self.coverage is not None:
            lines.append(
                f"  pinball {self.pinball:.4f} (levels {', '.join(map(str, LEVELS))}); "
                f"{100 * self.coverage:.1f} % of the values lie between {LEVELS[0]} and {LEVELS[-1]}, "
                f"{100 * (LEVELS[-1] - LEVELS[0]):.0f} % should"
            )
        for name, errors in self.floors.items():
            beaten = beside(self.model.squared, errors.squared, higher=False)
            lines.append(f"  floor: {name}: MSE {errors.squared:.4f}  MAE {errors.absolute:.4f}{beaten}")
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""

        def plain(errors: Errors) -> dict[str, object]:
            return {"mse": errors.squared, "mae": errors.absolute, "by_step": errors.by_step.tolist()}

        whole = {
            "title": self.title,
            **plain(self.model),
            "windows": self.windows,
            "pinball": self.pinball,
            "coverage": self.coverage,
            "floors": {name: plain(errors) for name, errors in self.floors.items()},
        }
        return json.dumps(whole, indent=1) + "\n"


def tensors(windows: Windows, chosen: np.ndarray, device: torch.device) -> tuple[Past, np.ndarray]:
    """What a model reads of some windows, and their futures [B, H] with NaN where missing."""
    past, future, known = windows.take(chosen)
    which = torch.from_numpy(chosen[:, 0].copy())
    seen = torch.from_numpy(windows.seen(chosen)).float()
    parts = torch.from_numpy(past).float(), torch.from_numpy(known).float(), which, seen
    return Past(*(part.to(device) for part in parts)), future


def mean_squared(model: Forecast | Together, windows: Windows, chosen: np.ndarray) -> Errors:
    """Errors of a model over some windows."""
    device = next(model.parameters()).device
    sums = Sums(windows.horizon)
    for at in range(0, len(chosen), ROWS):
        past, future = tensors(windows, chosen[at : at + ROWS], device)
        with torch.no_grad():
            sums.add(model.best(past).double().cpu().numpy(), future)
    return sums.errors()


def evaluate(
    model: Forecast | Together, windows: Windows, part: int, *, title: str, season: int
) -> ForecastEvaluation:
    """Score a model and the floors on all windows of a part, from every origin.

    Args:
        model: in evaluation mode.
        windows: of the series.
        part: 1 validation, 2 test.
        title: which data.
        season: rows of a season.
    """
    chosen, device = windows.of(part), next(model.parameters()).device
    horizon = windows.horizon
    pinballs, inside, counted = [], 0, 0
    levels = torch.tensor(LEVELS, device=device)
    sure = model.has_quantiles
    for at in range(0, len(chosen) if sure else 0, ROWS):
        past, future = tensors(windows, chosen[at : at + ROWS], device)
        with torch.no_grad():
            q = model.quantiles(past, levels).double().cpu().numpy()
        measured = np.isfinite(future)
        pinballs.append(mean_pinball(q, future, LEVELS) * measured.sum())
        inside += int(((future >= q[..., 0]) & (future <= q[..., -1])).sum())
        counted += int(measured.sum())
    example = _example(model, windows, chosen[len(chosen) // 2][None], device, sure)
    return ForecastEvaluation(
        f"{title}, lookback {windows.lookback}, horizon {horizon}, every origin",
        mean_squared(model, windows, chosen),
        floors(windows, chosen, season),
        len(chosen),
        sum(pinballs) / max(1, counted) if sure else None,
        inside / max(1, counted) if sure else None,
        example,
    )


def floors(windows: Windows, chosen: np.ndarray, season: int) -> dict[str, Errors]:
    """Last value repeated, last season repeated, closed-form ridge regression."""

    def parts(which: np.ndarray) -> Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]:
        def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for at in range(0, len(which), 4 * ROWS):
                past, future, _ = windows.take(which[at : at + 4 * ROWS])
                yield past, future

        return batches

    valid = windows.of(1)
    train = windows.of(0)
    ridge = Ridge(parts(train), parts(valid if len(valid) else train))
    named = {
        "last value repeated": lambda past: repeated(past, windows.horizon),
        f"last season ({season}) repeated": lambda past: seasonal(past, windows.horizon, season),
        f"ridge regression (penalty {ridge.penalty:g})": ridge.forecast,
    }
    sums = {name: Sums(windows.horizon) for name in named}
    for past, future in parts(chosen)():
        for name, forecast in named.items():
            sums[name].add(forecast(past), future)
    return {name: one.errors() for name, one in sums.items()}


def _example(
    model: Forecast | Together, windows: Windows, chosen: np.ndarray, device: torch.device, sure: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    past, future = tensors(windows, chosen, device)
    with torch.no_grad():
        best = model.best(past)[0].cpu().numpy()
        q = model.quantiles(past, torch.tensor(LEVELS, device=device))[0].cpu().numpy() if sure else None
    return past.values[0].cpu().numpy(), future[0], best, q
