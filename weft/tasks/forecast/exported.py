"""A forecaster as one graph: the newest values of series to the next ones."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.data import calendar
from weft.data.series import TIMES
from weft.errors import ConfigError
from weft.nn.forecasters.forecaster import Past
from weft.tasks.exported import Exported, Graph
from weft.tasks.forecast.data import scales_of
from weft.tasks.forecast.model import Forecast
from weft.tasks.forecast.predictor import header
from weft.tasks.predictor import Answer

if TYPE_CHECKING:
    from weft.tasks.forecast.ready import ForecastPipeline

SEED = 1


class Best(nn.Module):
    """Scaled values and the number of each series, and other inputs that the model has, to the forecast."""

    def __init__(self, model: Forecast, horizon: int, known: int) -> None:
        super().__init__()
        self.model = model
        self.horizon = horizon
        self.known = known

    def forward(self, values: Tensor, which: Tensor, *more: Tensor) -> Tensor:
        """[B, L], [B] int64, [B, L + H, G] if G, [B, L, C] if C, to [B, H]."""
        rows, lookback = values.shape
        known = more[0] if self.known else values.new_zeros(rows, lookback + self.horizon, 0)
        seen = more[-1] if len(more) > bool(self.known) else values.new_zeros(rows, lookback, 0)
        return self.model.best(Past(values, known, which, seen))


def exported(pipeline: "ForecastPipeline", model: nn.Module) -> Exported:
    """See ../exported.py.

    Raises:
        ConfigError: the exported program cannot read such tables.
    """
    assert isinstance(model, Forecast)
    data, about = pipeline.data, pipeline.about
    channels = (about.get("channels") or {}).get("names", [])
    two, three = (_inputs(about["known"], len(channels), pipeline, rows) for rows in (2, 3))
    graph = Graph("forecast_values", Best(model, data.horizon, about["known"]), (two, three), ["best"])
    settings: dict[str, Any] = {
        "kind": "forecaster",
        "lookback": data.lookback,
        "horizon": data.horizon,
        "names": list(about["names"]),
        "mean": list(map(float, about["mean"])),
        "std": list(map(float, about["std"])),
    }
    if not about["known"] and not channels:
        waves = partial(_examples, pipeline)
        return Exported([graph], settings, {}, waves, program="series", shown=_shown, same=_close)
    settings |= {"kind": "tables", **_of_tables(pipeline)}
    examples = partial(tables, pipeline)
    return Exported([graph], settings, {}, examples, program="tables", shown=_rows, same=_same_rows)


def _inputs(known: int, channels: int, pipeline: "ForecastPipeline", rows: int) -> dict[str, Tensor]:
    """Random windows."""
    data, draw = pipeline.data, torch.Generator().manual_seed(SEED + rows)
    found = {
        "values": torch.randn(rows, data.lookback, generator=draw),
        "which": torch.randint(len(pipeline.about["names"]), (rows,), generator=draw),
    }
    if known:
        found["known"] = torch.randn(rows, data.lookback + data.horizon, known, generator=draw)
    if channels:
        found["seen"] = torch.randn(rows, data.lookback, channels, generator=draw)
    return found


def _of_tables(pipeline: "ForecastPipeline") -> dict[str, Any]:
    """How a table is read."""
    data, about = pipeline.data, pipeline.about
    if data.resample is not None:
        raise ConfigError(
            "data: resample: the exported program reads rows as they are; serve the run with weft serve"
        )
    ahead, beside = scales_of(about)
    scales = {"covariates": ahead, "channels": beside}
    columns = about["channels"]["names"][: -len(data.past) or None] if data.inputs == "all" else []
    return {
        "time": data.time,
        "times": list(TIMES),
        "id": data.id,
        "targets": list(data.targets),
        "known": list(data.known),
        "past": list(data.past),
        "columns": list(columns),  # of a model that reads them all
        "calendar": about["known"] > len(data.known),
        "step": None if data.frequency is None else _step(data.frequency),
        **{key: {"mean": one.mean.tolist(), "std": one.std.tolist()} for key, one in scales.items()},
    }


def _step(frequency: str) -> dict[str, int]:
    """The distance of two times."""
    months = calendar.months_of(frequency)
    if calendar.OTHER_DAY.match(frequency):
        return {"months": months}
    offset = calendar.offset_of(frequency)
    kind = type(offset).__name__
    if kind == "Week":
        return {"seconds": 7 * 86400 * offset.n}
    if kind == "BusinessDay" and offset.n == 1:
        return {"business": 1}
    if months and "Business" not in kind:
        return {"months": months}
    with suppress(ValueError):
        return {"seconds": offset.nanos // 10**9}
    raise ConfigError(
        f"data: frequency: the exported program cannot count times of the frequency {frequency}; serve the "
        "run with weft serve"
    )


def _examples(pipeline: "ForecastPipeline", count: int) -> Sequence[Sequence[float]]:
    """Waves with noise at the scale of the first series."""
    rows, mean, std = pipeline.data.lookback + 7, pipeline.about["mean"][0], pipeline.about["std"][0]
    return [[float(value) for value in row] for row in _waves(rows, count) * std + mean]


def _waves(rows: int, count: int) -> np.ndarray:
    """[count, rows]."""
    draw = np.random.default_rng(SEED)
    return np.sin(np.arange(rows) * draw.uniform(0.05, 1.0, (count, 1))) + draw.normal(0, 0.3, (count, rows))


def tables(pipeline: "ForecastPipeline", count: int) -> Sequence[str]:
    """Tables of waves as CSV, with covariates and times if the model reads any."""
    data, about = pipeline.data, pipeline.about
    rows = data.lookback + 7
    begin = np.datetime64("2024-02-29T00:00:00", "s")
    times = (
        [] if data.frequency is None else calendar.after(data.frequency, begin, rows + data.horizon).tolist()
    )
    names = [*about["columns"], *data.known, *data.past]
    values = _waves(rows + data.horizon, count * len(names)).reshape(count, len(names), -1)
    names_of = [*([data.time or "ds"] if times else []), *([data.id] if data.id else []), *names]
    found = []
    for table in values:
        table[len(about["columns"]) + len(data.known) :, rows:] = np.nan
        table[: len(about["columns"]), rows:] = np.nan
        lines = [",".join(names_of)]
        for n, row in enumerate(table.T):
            numbers = ["" if np.isnan(one) else f"{one:.4f}" for one in row]
            lines.append(",".join([*map(str, times[n : n + 1]), *(["a"] if data.id else []), *numbers]))
        found.append("\n".join(lines) + "\n")
    return found


def _shown(answer: Answer) -> str:
    numbers: Any = answer.json()
    return " ".join(f"{value:.6g}" for value in numbers)


def _close(ours: str, theirs: str) -> bool:
    """Equal to four digits of the largest."""
    a, b = (np.array(text.split(), np.float64) for text in (ours, theirs))
    return a.shape == b.shape and bool(np.abs(a - b).max() <= 1e-4 * np.abs(a).max())


def _rows(answer: Answer) -> str:
    return header(()) + "\n" + answer.text()


def _same_rows(ours: str, theirs: str) -> bool:
    """The same series and times, and numbers as in _close."""
    a, b = ([line.rsplit(",", 1) for line in text.split("\n")[1:]] for text in (ours, theirs))
    if [row[0] for row in a] != [row[0] for row in b]:
        return False
    return _close(*(" ".join(row[1] for row in rows) for rows in (a, b)))
