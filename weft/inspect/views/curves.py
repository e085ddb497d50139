"""The course of training: loss, scores, learning rate, gradient norms, spectra, gates, gradient reach.

All values are from RUN/metrics.jsonl. Read next: ../../train/monitors.py, which measures during training.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft.diagnose.recorded import places, titles_of
from weft.inspect.views.view import Block, ChartsView, chart, series
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
