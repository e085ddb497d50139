"""How good forecasts are, beside forecasts that need no model, and where they are wrong."""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from weft.data.windows import Windows
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import Scored, as_json, report
from weft.metrics.series import Errors, Ridge, Sums, pinball, repeated, seasonal
from weft.nn.forecasters.forecaster import Past
from weft.tasks.series.model import Forecast
from weft.tasks.series.together import Together

ROWS = 512  # windows at once
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


class ForecastEvaluation(NamedTuple):
    """The errors of a model and of the baselines over the same windows."""

    title: str
    scored: list[Scored]  # MSE, MAE; with quantiles also the pinball loss over LEVELS
    model: Errors
    baselines: dict[str, Errors]
    windows: int
    coverage: float | None  # share of values between the first and the last of LEVELS
    example: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # past, future, forecast, quantiles

    @property
    def outputs(self) -> list[str]:
        """Step ahead and its squared error, a line each."""
        return [f"{step + 1}\t{error:.6f}" for step, error in enumerate(self.model.by_step)]

    def text(self) -> str:
        """For a reader."""
        lines = [self.title, *report(self.scored)]
        if self.coverage is not None:
            lines.append(
                f"  {100 * self.coverage:.1f} % of the values lie between the quantiles {LEVELS[0]} and "
                f"{LEVELS[-1]}; expected {100 * (LEVELS[-1] - LEVELS[0]):.0f} %"
            )
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""

        def plain(errors: Errors) -> dict[str, object]:
            return {"mse": errors.squared, "mae": errors.absolute, "by_step": errors.by_step.tolist()}

        whole = {
            "title": self.title,
            "scores": as_json(self.scored),
            **plain(self.model),
            "windows": self.windows,
            "coverage": self.coverage,
            "baselines": {name: plain(errors) for name, errors in self.baselines.items()},
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
    """Score a model and the baselines on all windows of a part, from every origin.

    Neighbouring windows share most of their values, so intervals are drawn over blocks of as many origins as
    the horizon has steps, whole blocks at a time.

    Args:
        model: in evaluation mode.
        windows: of the series.
        part: 1 validation, 2 test.
        title: which data.
        season: rows of a season.

    Source: Carlstein 1986, "The use of subseries values for estimating the variance of a general statistic
        from a stationary sequence" (blocks that do not overlap).
    """
    chosen, device = windows.of(part), next(model.parameters()).device
    levels, sure = torch.tensor(LEVELS, device=device), model.has_quantiles
    sums, rows = Sums(windows.horizon), []
    for at in range(0, len(chosen), ROWS):
        past, future = tensors(windows, chosen[at : at + ROWS], device)
        with torch.no_grad():
            best = model.best(past).double().cpu().numpy()
            q = model.quantiles(past, levels).double().cpu().numpy() if sure else None
        sums.add(best, future)
        rows.append(_each(best, q, future))
    errors, lowest = sums.errors(), baselines(windows, chosen, season)
    each = np.concatenate(rows)  # [N, 5] squared, absolute, pinball, inside, values
    blocks = _blocks(chosen, windows.horizon)
    summed = np.stack([np.bincount(blocks, column) for column in each.T], 1)
    signature = f"scaled by the training part|windows:{len(chosen)}|values:{errors.values}|none dropped"
    signature += f"|blocks of {windows.horizon} origins"
    scores = []
    for column, (name, own) in enumerate((("MSE", "squared"), ("MAE", "absolute"), ("pinball", ""))):
        if own or sure:
            said = signature if own else f"levels:{','.join(map(str, LEVELS))}|{signature}"
            metric = ratio(name, said, higher_is_better=False)
            # a forecast without quantiles has the absolute error as its pinball loss at every level
            beside = {key: float(getattr(one, own or "absolute")) for key, one in lowest.items()}
            scores.append(mean_of(metric, summed[:, column], summed[:, 4], baselines=beside))
    return ForecastEvaluation(
        f"{title}, lookback {windows.lookback}, horizon {windows.horizon}, every origin",
        scores,
        errors,
        lowest,
        len(chosen),
        float(each[:, 3].sum() / max(1.0, each[:, 4].sum())) if sure else None,
        _example(model, windows, chosen[len(chosen) // 2][None], device, sure),
    )


def _each(best: np.ndarray, quantiles: np.ndarray | None, future: np.ndarray) -> np.ndarray:
    """[B, 5] of each window: squared and absolute errors, pinball loss, values inside, values; all summed."""
    error = np.nan_to_num(best - future)
    counts = np.isfinite(future).sum(1)
    loss, inside = np.zeros(len(future)), np.zeros(len(future))
    if quantiles is not None:
        loss = np.nansum(pinball(quantiles, future, LEVELS), 1)
        inside = ((future >= quantiles[..., 0]) & (future <= quantiles[..., -1])).sum(1)
    return np.stack([np.square(error).sum(1), np.abs(error).sum(1), loss, inside, counts], 1)


def _blocks(chosen: np.ndarray, horizon: int) -> np.ndarray:
    """[N] the number of each window's block: so many origins of one series, one after the other."""
    pairs = np.stack([chosen[:, 0], chosen[:, 1] // max(1, horizon)], 1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)  # type: ignore[no-any-return]


def baselines(windows: Windows, chosen: np.ndarray, season: int) -> dict[str, Errors]:
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
