"""Recurrent cells over time: state, gates and candidate of every layer and direction.

The states are those of the fast path; the values within each step are recomputed by the cell
(diagnose/recorded.py), and a test checks that both agree. Read next: forgetting.py.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils import parametrize

from weft.diagnose.forgetting import saturation, step_values
from weft.diagnose.reach import seen
from weft.diagnose.recorded import CellPlace, RecordedRun, StepTrace, places, titles_of, trace
from weft.figures.axes import blank, printable
from weft.figures.colours import INK
from weft.figures.records import Figure
from weft.inspect.views.view import Block, Matrix, View, draw_matrix, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

UNITS = 96  # units per layer on the page, those that vary most; CSV and JSON have all
NAMES = {
    "hidden": "h, output state",
    "cell": "c, cell",
    "input_gate": "i, input gate",
    "forget_gate": "f, forget gate",
    "output_gate": "o, output gate",
    "candidate": "candidate",
    "update_gate": "u, update gate (1 keeps the past)",
    "reset_gate": "r, reset gate",
}


class CellTrace(NamedTuple):
    """One cell over the positions of its sequence."""

    place: CellPlace
    title: str  # such as "encoder, layer 1 (GRU)"
    labels: list[str]  # of the T positions
    values: dict[str, np.ndarray]  # [T, H] by what was recorded


def longest_runs(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """The longest sequence of each cell, in the order of the model."""
    found: dict[str, RecordedRun] = {}
    for run in runs:
        best = found.get(run.place.name)
        if best is None or steps_of(run) > steps_of(best):
            found[run.place.name] = run
    return list(found.values())


def steps_of(run: RecordedRun) -> int:
    """The number of steps, T."""
    return sum(call.x.shape[1] for call in run.calls)


def titled_runs(opened: LoadedRun, subject: Inspection) -> list[tuple[RecordedRun, str]]:
    """The longest sequence of each cell, and the cell's title; none if nothing was read."""
    if subject.batch is None:
        return []
    titles = titles_of(places(opened.model))
    return [(run, titles[run.place.name]) for run in longest_runs(seen(opened.model, subject.batch))]


def labels_of(part: str, steps: int, subject: Inspection) -> list[str]:
    """The labels of the positions that a part of the model reads, in order."""
    sides = [subject.source, subject.target]
    if "decoder" in part:
        sides.reverse()
    for side in sides:
        if len(side) == steps:
            return list(side)
    return [str(number) for number in range(1, steps + 1)]


def recorded(steps: StepTrace) -> dict[str, np.ndarray]:
    """The values of a cell on the first row at each step, [T, H] by name, in the order of positions."""
    found = step_values(steps, lambda name, value: value.dim() == 2 and not value.is_complex())
    order = sorted(found, key=lambda name: list(NAMES).index(name) if name in NAMES else 99)
    whole = {name: found[name][0].float().cpu().numpy() for name in order}
    return {name: values[::-1].copy() for name, values in whole.items()} if steps.place.backward else whole


class CellsView(View):
    """States and gates of recurrent layers."""

    title = "Cells over time"
    order = 30

    def __init__(self, layers: Sequence[CellTrace]) -> None:
        self.layers = layers

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "CellsView | None":
        layers = []
        with parametrize.cached():
            for run, title in titled_runs(opened, subject):
                labels = labels_of(run.place.name, steps_of(run), subject)
                layers.append(CellTrace(run.place, title, labels, recorded(trace(run))))
        return cls(layers) if layers else None

    def page(self) -> list[Block]:
        """Only the units that vary most."""
        return self.blocks(UNITS)

    def table(self) -> Iterable[Sequence[object]]:
        yield "cell", "layer", "backward", "quantity", "position", "label", "unit", "value"
        for one in self.layers:
            head = one.title, one.place.layer + 1, one.place.backward
            for name, values in one.values.items():
                for (t, unit), value in np.ndenumerate(values):
                    yield *head, name, t + 1, one.labels[t], unit, float(value)

    def figure(self) -> "Figure":
        """One column per cell, with a heat map for each of its quantities."""
        count = max(len(one.values) for one in self.layers)
        columns = len(self.layers)
        figure = blank(8.4 if columns == 1 else 5.2 * columns, 1.7 * count + 0.8)
        for column, one in enumerate(self.layers):
            for number, name in enumerate(one.values):
                axes = figure.add_subplot(count, columns, number * columns + column + 1)
                drawn = _heat(one, name, UNITS)
                draw_matrix(axes, drawn)
                axes.set_ylabel(drawn["name"], fontsize=8, color=INK)
                axes.set_title("" if number else one.title, fontsize=12, color=INK)
            if len(one.labels) <= 60:
                labels = [printable(label) for label in one.labels]
                axes.set_xticks(
                    range(len(labels)), labels, rotation=60, ha="right", fontsize=8, parse_math=False
                )
        return figure

    def blocks(self, limit: int | None = None) -> list[Block]:
        groups, rows = [], []
        for one in self.layers:
            groups.append({"name": one.title, "items": [_heat(one, name, limit) for name in one.values]})
            rows += self._shares(one)
        blocks: list[Block] = [
            said(
                "Each row is a unit, each column a position. Gates range from 0 (closed) to 1 (open). Click "
                "a row to plot that unit."
            ),
            {"kind": "matrices", "pick": "cell", "each": "quantity", "groups": groups, "lines": True},
        ]
        if rows:
            head = ["cell", "gate", "closed (< 0.1)", "open (> 0.9)"]
            blocks.append({"kind": "table", "head": head, "rows": rows})
        return blocks

    def _shares(self, one: CellTrace) -> list[list[object]]:
        rows: list[list[object]] = []
        for name, values in one.values.items():
            if not name.endswith("_gate"):
                continue
            gate = torch.from_numpy(values.copy())[None]
            shares = saturation(gate, torch.ones(gate.shape[:2], dtype=torch.bool))
            shut, opened = (f"{float(share.mean()):.1%}" for share in shares)
            rows.append([one.title, NAMES.get(name, name), shut, opened])
        return rows


def _heat(one: CellTrace, name: str, limit: int | None) -> Matrix:
    values = one.values[name]
    units, (low, high) = _most_varying(values, limit), _scale(name, values)
    few = len(units) < values.shape[1]
    note = f"the {len(units)} of {values.shape[1]} units that vary most" if few else ""
    rows, shown = [f"unit {unit}" for unit in units], values[:, units].T
    return matrix(NAMES.get(name, name), shown, rows, one.labels, low=low, high=high, note=note)


def _most_varying(values: np.ndarray, limit: int | None) -> np.ndarray:
    """The units whose values vary most, in their original order."""
    if limit is None or values.shape[1] <= limit:
        return np.arange(values.shape[1])
    return np.sort(np.argsort(-values.std(0), kind="stable")[:limit])


def _scale(name: str, values: np.ndarray) -> tuple[float, float]:
    if name.endswith("_gate"):
        return 0.0, 1.0
    top = max(float(np.abs(values).max()), 1e-6)
    return -top, top
