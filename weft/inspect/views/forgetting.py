"""How fast each cell forgets: decays, eigenvalues, half-lives, shares that remain, and matrix states.

The numbers are from ../../diagnose/forgetting.py. Read next: gradients.py, how far back the gradient goes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils import parametrize

from weft.diagnose.forgetting import MemoryVerdict, forgetting, lasting, matrices_at, verdict_of
from weft.diagnose.recorded import StepTrace, trace
from weft.figures.axes import blank, printable
from weft.figures.colours import BARS, FAINT, GRID, INK
from weft.figures.records import Axes, Figure
from weft.inspect.views.cells import labels_of, steps_of, titled_runs
from weft.inspect.views.view import (
    Block,
    View,
    capital,
    chart,
    draw_lines,
    draw_matrix,
    matrix,
    said,
    series,
)
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

CHANNELS = 96
"""Channels per layer on the page, from the slowest to the fastest; CSV and JSON have all."""

TIMES = 8  # positions at which matrices are drawn
TURNS = 1e-6
"""An eigenvalue is complex, and drawn in the plane, if its imaginary part is larger."""


class ForgettingCurve(NamedTuple):
    """What one cell keeps, in the order of positions."""

    title: str
    labels: list[str]  # of the T positions
    eigenvalues: np.ndarray  # [T, N], of large matrices only at the last steps
    kept: np.ndarray  # [T, C]
    half_lives: np.ndarray  # [C]
    matrices: np.ndarray  # [times, heads, K, V]; no times for a cell without matrices
    times: list[int]  # the position of each
    heads: bool
    verdict: MemoryVerdict

    @property
    def what(self) -> str:
        """What a channel is called."""
        return "head" if self.heads else "channel"


def layer_of(steps: StepTrace, title: str, labels: Sequence[str]) -> ForgettingCurve | None:
    """The measurements of a cell; None if it records no decay."""
    found = forgetting(steps)
    if found is None or len(found.at) < 2:
        return None
    back = steps.place.backward
    order = slice(None, None, -1 if back else 1)
    eigenvalues, kept = (part.cpu().numpy()[order] for part in (found.eigenvalues, found.kept))
    count = len(found.at)
    times = np.unique(np.linspace(0, count - 1, TIMES).round().astype(int)).tolist()
    drawn = [matrices_at(steps, int(found.at[t])) for t in times]
    return ForgettingCurve(
        title,
        list(labels)[:count],
        eigenvalues,
        kept,
        found.half_lives.cpu().numpy(),
        torch.stack(drawn).float().cpu().numpy(),
        [count - 1 - t for t in times] if back else times,
        found.heads,
        verdict_of(found, title),
    )


class ForgettingView(View):
    """Decays, half-lives and matrix states of recurrent layers."""

    title = "Forgetting"
    order = 35

    def __init__(self, layers: Sequence[ForgettingCurve]) -> None:
        self.layers = layers

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "ForgettingView | None":
        with parametrize.cached():
            found = [
                layer_of(trace(run), title, labels_of(run.place.name, steps_of(run), subject))
                for run, title in titled_runs(opened, subject)
            ]
        layers = [one for one in found if one is not None]
        return cls(layers) if layers else None

    def page(self) -> list[Block]:
        """Only some of the channels."""
        return self.blocks(CHANNELS)

    def table(self) -> Iterable[Sequence[object]]:
        yield "cell", "quantity", "position", "channel", "value", "imaginary part"
        for one in self.layers:
            for channel, life in enumerate(one.half_lives.tolist()):
                yield one.title, "half-life", "", channel, life, ""
            for name, values in (("share kept", one.kept), ("eigenvalue", one.eigenvalues)):
                for t, row in enumerate(values, len(one.kept) - len(values) + 1):
                    for channel, value in enumerate(row.astype(complex).tolist()):
                        yield one.title, name, t, channel, value.real, value.imag

    def figure(self) -> "Figure":
        """One row per cell: decays or eigenvalues, half-lives, and the matrices of the last positions."""
        wide = 3 if any(one.matrices.size for one in self.layers) else 2
        figure = blank(4.6 * wide, 3.3 * len(self.layers))
        for row, one in enumerate(self.layers):
            places = [figure.add_subplot(len(self.layers), wide, row * wide + n + 1) for n in range(wide)]
            if _turned(one) is None:
                draw_matrix(places[0], _decays(one, CHANNELS))
            else:
                _draw_plane(places[0], one)
            places[0].set_title(f"{printable(one.title)}\n{places[0].get_title()}", fontsize=9, color=INK)
            draw_lines(places[1], {**_lives([one]), "title": "half-lives, slowest first", "labels": []})
            if wide == 3 and one.matrices.size:
                draw_matrix(places[2], _states(one)[0]["items"][0])
                places[2].set_title(f"S of head 1, {places[2].get_title()}", parse_math=False)
            elif wide == 3:
                places[2].set_axis_off()
        return figure

    def blocks(self, limit: int | None = None) -> list[Block]:
        blocks: list[Block] = [
            said(
                "A cell multiplies what it keeps by a factor at every step. A half-life is the number of "
                "steps after which one half is left, at the mean rate of this input; one longer than the "
                "input is extrapolated."
            )
        ]
        blocks += [said(f"{capital(one.verdict.sentence)}.") for one in self.layers]
        blocks += [_lives(self.layers), *(_shares(one) for one in self.layers), _quantiles(self.layers)]
        maps = [{"name": one.title, "items": [_decays(one, limit)]} for one in self.layers if _changes(one)]
        if maps:
            blocks.append(
                said(
                    "The factor of each channel at each position: 1 keeps all, 0 forgets all. Where the "
                    "state is multiplied by a matrix, the sizes of its eigenvalues; a size below 1 is a "
                    "direction that was overwritten."
                )
            )
            heat: Block = {"kind": "matrices", "pick": "cell", "each": "factor", "groups": maps}
            blocks.append({**heat, "lines": True})
        for one in self.layers:
            points = _turned(one)
            if points is not None:
                name = f"{one.title}: eigenvalues in the complex plane"
                shown = points[_evenly(len(points), limit)]
                blocks.append({"kind": "plane", "title": name, "x": shown.real, "y": shown.imag})
        kept = [group for one in self.layers if one.matrices.size for group in _states(one)]
        if kept:
            blocks.append(said("The matrix of each head, last head first; one row per feature of the keys."))
            blocks.append({"kind": "matrices", "pick": "cell", "each": "position", "groups": kept})
        return blocks


def _evenly(count: int, limit: int | None) -> np.ndarray:
    """At most `limit` of `count` places, evenly spaced, with the first and the last."""
    if limit is None or count <= limit:
        return np.arange(count)
    return np.linspace(0, count - 1, limit).round().astype(int)


def _slowest_first(one: ForgettingCurve) -> np.ndarray:
    return np.argsort(-one.half_lives, kind="stable")


def _lives(layers: Sequence[ForgettingCurve]) -> Block:
    """Half-lives of all channels, slowest first; those that never end are drawn as gaps."""
    lines = []
    for one in layers:
        lives = one.half_lives[_slowest_first(one)]
        share = np.linspace(0, 1, len(lives)) if len(lives) > 1 else np.array([0.0])
        lines.append(series(one.title, share, np.where(np.isfinite(lives), lives, np.nan)))
    title = "Half-life of every channel, slowest first"
    return chart(title, "share of the channels", "steps", lines, log=True)


def _quantiles(layers: Sequence[ForgettingCurve]) -> Block:
    rows = []
    for one in layers:
        lives = np.sort(one.half_lives)
        picked = [lives[0], lives[(len(lives) - 1) // 2], lives[-1]]
        rows.append([one.title, f"{len(lives)} {one.what}s", *(lasting(float(life)) for life in picked)])
    head = ["cell", "what fades on its own", "half-life, fastest", "median", "slowest"]
    return {"kind": "table", "head": head, "rows": rows}


def _shares(one: ForgettingCurve) -> Block:
    at = np.arange(len(one.kept))
    lines = [
        series(f"{one.what} that keeps most", at, one.kept.max(1)),
        series(f"median {one.what}", at, np.median(one.kept, 1)),
        series(f"mean over {one.what}s", at, one.kept.mean(1)),
    ]
    title = f"{one.title}: share of a position that remains at the end"
    return chart(title, "position", "share kept", lines, log=True, labels=one.labels)


def _changes(one: ForgettingCurve) -> bool:
    """Whether the factors depend on the position."""
    return float(np.ptp(np.abs(one.eigenvalues), 0).max()) > TURNS


def _decays(one: ForgettingCurve, limit: int | None) -> Block:
    """|eigenvalue| of every channel at each position, slowest first."""
    sizes = np.abs(one.eigenvalues)
    if one.heads:
        sizes = -np.sort(-sizes.reshape(len(sizes), len(one.half_lives), -1), -1)  # slowest first in a head
        per_head = sizes.shape[-1]
        names = [f"head {n // per_head + 1}, {n % per_head + 1}" for n in range(sizes[0].size)]
        sizes = sizes.reshape(len(sizes), -1)
        order = np.arange(sizes.shape[1])
    else:
        order = _slowest_first(one)
        names = [f"channel {n}" for n in range(sizes.shape[1])]
    order = order[_evenly(len(order), limit)]
    note = f"{len(order)} of {sizes.shape[1]}, slowest first" if len(order) < sizes.shape[1] else ""
    rows, labels = [names[n] for n in order], one.labels[-len(sizes) :]
    low = float(sizes.min()) if sizes.min() > 0.5 else 0.0  # else decays near 1 are all dark
    return matrix("size of the factor", sizes[:, order].T, rows, labels, low=low, note=note)


def _turned(one: ForgettingCurve) -> np.ndarray | None:
    """The eigenvalues of the last position [N] if some are complex or negative, slowest first."""
    last = one.eigenvalues[-1]
    if not (np.abs(last.imag).max() > TURNS or last.real.min() < -TURNS):
        return None
    return last[np.argsort(-np.abs(last), kind="stable")]


def _states(one: ForgettingCurve) -> list[Block]:
    """One group for each head, with its matrix at each of some positions."""
    _, heads, rows, columns = one.matrices.shape
    most = float(np.abs(one.matrices).max()) or 1.0
    keys, values = [f"key {n}" for n in range(rows)], [f"value {n}" for n in range(columns)]
    return [
        {
            "name": f"{one.title}, head {head + 1}",
            "items": [
                matrix(f"after {t + 1}: {one.labels[t]}", each[head], keys, values, low=-most, high=most)
                for t, each in list(zip(one.times, one.matrices, strict=True))[::-1]
            ],
        }
        for head in range(heads)
    ]


def _draw_plane(axes: "Axes", one: ForgettingCurve) -> None:
    points, circle = _turned(one), np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    assert points is not None
    axes.plot(circle.real, circle.imag, color=FAINT, linewidth=1)
    axes.plot(points.real, points.imag, "o", color=BARS[0], markersize=3, alpha=0.7)
    axes.set(aspect="equal", title="eigenvalues")
    axes.grid(color=GRID, linewidth=0.6)
    axes.tick_params(colors=FAINT, labelsize=7)
