"""Charts: the course of training, a forecast after its past, a score for short and long inputs.

The course of training is from RUN/metrics.jsonl: loss, scores, learning rate, gradient norms, spectra, gates,
gradient reach. Read next: ../../train/monitors.py, which measures during training.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from weft.diagnose.recorded import places, titles_of
from weft.errors import ConfigError
from weft.figures.records import Figure, ForecastRecord
from weft.inspect.views.view import Block, ChartsView, View, chart, said, series
from weft.metrics.bylength import LengthRow
from weft.run import LoadedRun
from weft.store import jsonfile
from weft.tasks.inspection import Inspection

Points = dict[str, list[tuple[float, float]]]


def read_curves(path: Path) -> dict[str, Points]:
    """The events of a run: for each kind (update, validation, monitor), values by name as (update, value).

    A truncated line, for example after a full disk, is skipped. A training that resumed at an earlier update
    replaces what it had logged after it.
    """
    found: dict[str, Points] = {"update": {}, "validation": {}, "monitor": {}}
    if not path.is_file():
        return found
    for event in jsonfile.events(path):
        try:
            kind, update = event["event"], float(event["update"])
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        if not isinstance(kind, str) or kind not in found:
            continue
        numbers: Any = event.get({"validation": "scores", "monitor": "values"}.get(kind, ""), event)
        if not isinstance(numbers, dict):
            continue
        for name, value in numbers.items():
            if jsonfile.is_number(value):
                points = found[kind].setdefault(name, [])
                while points and points[-1][0] >= update:
                    points.pop()
                points.append((update, float(value)))
    return found


def last_sources(log: Path, last_bytes: int = jsonfile.LOG) -> list[str]:
    """The sources of the samples of the last validation that has some; none where they are no texts."""
    found: list[str] = []
    for event in jsonfile.events(log, last_bytes):
        samples = event.get("samples")
        rows = [one for one in samples if isinstance(one, dict)] if isinstance(samples, list) else []
        texts = [text for one in rows if isinstance(text := one.get("source"), str) and text.strip()]
        found = texts or found
    return found


class CurvesView(ChartsView):
    """Loss, scores and gradients during training."""

    title = "Training"
    order = 90

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "CurvesView | None":
        """The view, if the run logged an update: a model that is solved at once has no curve."""
        events, titles = read_curves(opened.path / "metrics.jsonl"), titles_of(places(opened.model))
        charts = charts_of(events, unit=opened.task.loss_unit, titles=titles)
        begun = any(points[-1][0] > 0 for kind in events.values() for points in kind.values())
        return cls(charts) if begun else None


def charts_of(
    events: dict[str, Points], *, unit: str, titles: Mapping[str, str] = MappingProxyType({})
) -> list[Block]:
    """The charts of a run."""
    update, valid, monitor = events["update"], events["validation"], events["monitor"]
    charts = []
    losses = _lines(update, {"loss": "training"}) + _lines(valid, {"loss": "validation"})
    if losses:
        charts.append(chart("Loss", "update", unit, losses))
    for name in valid:
        if name not in ("loss", "perplexity"):
            charts.append(chart(f"Validation: {name}", "update", name, _lines(valid, {name: name})))
    for name, title in (("lr", "Learning rate"), ("gradient_norm", "Gradient norm")):
        if name in update:
            charts.append(chart(title, "update", name, _lines(update, {name: name}), log=name != "lr"))
    reaches: dict[str, dict[int, str]] = {}
    for name in monitor:
        cell, _, what = name.rpartition("/")
        if what.startswith("reach_"):
            reaches.setdefault(cell, {})[int(what.removeprefix("reach_"))] = name
    for cell, lags in reaches.items():
        lines = _lines(monitor, {lags[lag]: f"lag {lag}" for lag in sorted(lags)})
        title = f"Gradient reach of {titles.get(cell, cell)}"
        charts.append(chart(title, "update", "‖∂h(T)/∂h(T − lag)‖", lines, log=True))
    for ending, title, y in (
        ("/sigma_max", "Largest singular value of W_hh", "σ_max"),
        ("/spectral_radius", "Spectral radius of W_hh", "ρ"),
        ("_gate_shut", "Closed gates", "share below 0.1"),
        ("_gate_open", "Open gates", "share above 0.9"),
        ("/half_life", "Half-life of the cell state", "steps"),
    ):
        lines = _lines(
            monitor, {name: _shown(name, ending, titles) for name in monitor if name.endswith(ending)}
        )
        if lines:
            charts.append(chart(title, "update", y, lines))
    return charts


def _shown(name: str, ending: str, titles: Mapping[str, str]) -> str:
    """Such as "encoder, layer 1 (GRU): forget gate" for encoder.stack.forwards.0/forget_gate_shut."""
    cell, _, what = name.rpartition("/")
    gate = what.removesuffix(ending)
    shown = titles.get(cell, cell)
    return f"{shown}: {gate} gate" if gate and not ending.startswith("/") else shown


def _lines(points: Points, names: dict[str, str]) -> list[Block]:
    found = []
    for name, shown in names.items():
        if name in points:
            x, y = zip(*points[name], strict=True)
            found.append(series(shown, x, y))
    return found


class ForecastView(View):
    """Past values, the forecast and its intervals."""

    title = "Forecast"
    order = 5

    def __init__(self, forecast: ForecastRecord) -> None:
        self.forecast = forecast

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "ForecastView | None":
        return None if subject.forecast is None else cls(subject.forecast)

    def blocks(self) -> list[Block]:
        one = self.forecast
        dated = one.times.dtype.kind == "M"
        past, ahead = np.arange(-len(one.past) + 1, 1), np.arange(1, len(one.best) + 1)
        if dated:
            past, ahead = (
                times.astype("datetime64[s]").astype(np.int64) for times in (one.past_times, one.times)
            )
        lines = [
            series("measured", past, one.past, colour=-1),
            series("forecast", ahead, one.best, colour=0),
        ]
        if one.actual is not None:
            lines.append(series("actual", ahead, one.actual, dashed=True, colour=-1))
        bands = []
        if one.quantiles is not None:
            for outer in range(len(one.levels) // 2):
                low, high = (one.quantiles[:, place].astype(float) for place in (outer, -1 - outer))
                share = one.levels[-1 - outer] - one.levels[outer]
                bands.append({"name": f"{share:.0%} band", "x": ahead, "low": low, "high": high, "colour": 0})
        x = "time" if dated else "steps from now"
        return [chart(one.name or "series", x, "value", lines, dates=dated, bands=bands)]

    def table(self) -> Iterable[Sequence[object]]:
        one = self.forecast
        levels = one.levels if one.quantiles is not None else ()
        yield "time", "measured", "forecast", *(f"q{level:g}" for level in levels)
        for time, value in zip(one.past_times, one.past.tolist(), strict=True):
            yield str(time), value, "", *("" for _ in levels)
        for n, time in enumerate(one.times):
            quantiles = one.quantiles[n].tolist() if one.quantiles is not None else []
            yield str(time), "", float(one.best[n]), *quantiles

    def figure(self) -> "Figure":
        """The picture of `weft predict --pictures`."""
        from weft.figures.series import forecast_figure

        return forecast_figure(self.forecast)


class QualityView(View):
    """Score by source length (needs the test split)."""

    title = "Quality by length"
    order = 80

    def __init__(self, name: str, title: str, length: str, rows: Sequence[LengthRow]) -> None:
        self.name, self.tested, self.length, self.rows = name, title, length, rows
        self.unit = length.partition(" ")[0]

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "QualityView | None":
        """Never by itself; see `score`."""
        return None

    def blocks(self) -> list[Block]:
        rows = [(n, row) for n, row in enumerate(self.rows) if row.score is not None]
        at = np.array([n for n, _ in rows])
        scores = [row.score for _, row in rows if row.score is not None]
        lines = [series(scores[0].name if scores else "score", at, [score.value for score in scores])]
        ends: list[tuple[str, list[float]]] = [
            ("low end of 95 %", [score.low or 0.0 for score in scores]),
            ("high end of 95 %", [score.high or 0.0 for score in scores]),
        ]
        lines += [series(name, at, values, dashed=True, faint=True) for name, values in ends]
        table = [list(map(_as_text, row)) for row in list(self.table())[1:]]
        return [
            said(self.tested),
            chart(f"By {self.length}", self.unit, "score", lines, labels=[row.label for row in self.rows]),
            {"kind": "table", "head": [self.unit, "sentences", "score", "low", "high"], "rows": table},
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield self.unit, "sentences", "score", "low", "high"
        for row in self.rows:
            score = row.score
            numbers = ("", "", "") if score is None else (score.value, score.low, score.high)
            yield row.label, row.sentences, *numbers

    def figure(self) -> "Figure":
        from weft.figures.charts import quality_by_length

        return quality_by_length(self.rows, title=self.tested, x=self.length)


def score(opened: LoadedRun) -> QualityView:
    """Score the test split of a run's data."""
    if not opened.task.evaluation.length:
        raise ConfigError(f"--evaluate: a run of {opened.name} has no score by length; leave it out")
    found = opened.pipeline.evaluate(opened.model)
    return QualityView(opened.path.resolve().name, found.title, found.length, found.lengths)


def _as_text(value: object) -> object:
    return f"{value:.2f}" if isinstance(value, float) else value
