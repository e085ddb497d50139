"""Measure a training: the time of updates; reach, spectra, gates, and the norm of each layer.

Each measurement uses one example of the latest batch, in evaluation mode and float32, with its own random
numbers. Weights, gradients and torch's generators are not touched, so a run with monitors is bit-identical to
one without. Read next: ../diagnose/reach.py; training_state.py, which calls `after` at each update.
"""

import math
import time
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils import parametrize

from weft.diagnose.forgetting import KEEPING, gates, half_life, half_lives, saturation
from weft.diagnose.jacobian import recurrent_matrices, sigma_max, spectral_radius
from weft.diagnose.reach import LAGS, reach_at, seen, verdict, worst
from weft.diagnose.recorded import CellPlace, RecordedRun, StepTrace, places, titles_of, trace
from weft.nn.randomness import drawing
from weft.tasks.task import Training
from weft.train.position import BatchGroup, Position
from weft.train.reporting import Line, Reporter
from weft.train.settings import TrainingSettings
from weft.train.sharding import local
from weft.train.update import UpdateResult
from weft.tree import take

SHARE = 0.03
"""Maximum share of the time of updates that measuring may take."""

ROWS = 4  # examples to read; the longest is measured
SLOWEST = 1e11  # operations per second, to estimate the cost of the first measurement


class Monitors:
    """Measures a model at progress lines, in at most 3 % of the training time, or every so many updates."""

    def __init__(
        self, training: Training, model: nn.Module, settings: TrainingSettings, report: Reporter
    ) -> None:
        self._training, self._model, self._settings, self._report = training, model, settings, report
        self._every = int(settings.monitors)
        self._budget = settings.monitors is True
        self._trained = self._spent = 0.0
        self._expected = 0.005 + sum(map(_operations, places(model))) / SLOWEST
        self._reaches: dict[str, list[Mapping[int, float]]] = {}

    def after(self, position: Position, group: BatchGroup, taken: UpdateResult) -> None:
        """Measure after an update, if due; an error ends the measurements, not the training."""
        if not self._due(position):
            return
        begun = time.perf_counter()
        try:
            with parametrize.cached():  # compute an orthogonal matrix once, not at every step
                values = self._measure(group, taken)
        except Exception as error:  # noqa: BLE001  a user's own cell or task may raise anything
            self._every = 0
            self._report.warned(f"monitors: measuring stops ({type(error).__name__}: {error})")
            return
        self._expected = time.perf_counter() - begun
        self._spent += self._expected
        self._report.monitored(position.update, values)

    def reads(self, position: Position) -> bool:
        """Whether an update is measured at a position where no progress line is due."""
        return not self._budget and bool(self._every) and position.update % self._every == 0

    def conclude(self) -> None:
        """Report how far gradients reached in this training, in one sentence about the worst layer."""
        titles = titles_of(places(self._model))
        found = {
            name: verdict(measures, name=titles.get(name, name)) for name, measures in self._reaches.items()
        }
        if found:
            self._report.said(worst(found).sentence)

    def _due(self, position: Position) -> bool:
        if not self._budget:
            return self.reads(position)
        if not position.logs(self._settings):
            return False
        self._trained += position.wall
        return self._every > 0 and self._spent + self._expected <= SHARE * self._trained

    def _measure(self, group: BatchGroup, taken: UpdateResult) -> dict[str, float]:
        values = {f"gradient_norm/{name}": norm for name, norm in self._norms(taken).items()}
        if not places(self._model):
            return values
        device = next(self._model.parameters()).device
        own = torch.Generator().manual_seed(0) if device.type == "cpu" else None
        with torch.random.fork_rng([device] if device.type == "cuda" else []), drawing(own):
            batch = self._training.collate(group.numbers[0][:ROWS]).to(device)
            runs = seen(self._model, batch)
        for run in _longest(runs):
            for name, value in self._cell(trace(run, last=max(LAGS) + 1)).items():
                values[f"{run.place.name}/{name}"] = value
        return values

    def _cell(self, steps: StepTrace) -> dict[str, float]:
        found: dict[str, float] = {}
        matrices = recurrent_matrices(steps.place.cell)
        if matrices is not None:  # the largest of all gates
            found["sigma_max"] = float(sigma_max(matrices).max())
            found["spectral_radius"] = float(spectral_radius(matrices).max())
        for name, gate in gates(steps).items():
            shares = saturation(gate, steps.mask)
            found[f"{name}_shut"], found[f"{name}_open"] = (
                float(shares.shut.mean()),
                float(shares.open.mean()),
            )
            if name in KEEPING:
                found["half_life"] = float(half_life(gate, steps.mask).median())
        row = steps.mask.sum(1).argmax()[None]
        one = StepTrace(steps.place, steps.x[row], [take(s, row) for s in steps.states], steps.mask[row])
        lives = half_lives(one)
        if lives is not None:  # of matrices, which also forget where their forget gate is 1
            found["half_life"] = float(lives.median())
        reaches = {lag: float(norm) for lag, norm in reach_at(one).items()}
        self._reaches.setdefault(steps.place.name, []).append(reaches)
        return found | {f"reach_{lag}": norm for lag, norm in reaches.items()}

    def _norms(self, taken: UpdateResult) -> dict[str, float]:
        """The gradient norm of each layer, before clipping."""
        clip = self._settings.clip_norm
        scale = max(1.0, taken.norm / clip) if clip else 1.0
        squares: dict[str, list[torch.Tensor]] = {}
        for name, parameter in self._model.named_parameters():
            if parameter.grad is not None:
                squares.setdefault(layer_of(name), []).append(local(parameter.grad).float().square().sum())
        names = list(squares)
        sums = torch.stack([torch.stack(one).sum() for one in squares.values()]).tolist() if names else []
        return {name: scale * math.sqrt(total) for name, total in zip(names, sums, strict=True)}


def layer_of(name: str) -> str:
    """The layer of a parameter: its path up to the first number, or without the last name.

    Example:
        >>> layer_of("encoder.stack.forwards.0.weight_h"), layer_of("embed.table.weight")
        ('encoder.stack.forwards.0', 'embed.table')
    """
    parts = name.split(".")
    for place, part in enumerate(parts[:-1]):
        if part.isdigit():
            return ".".join(parts[: place + 1])
    return ".".join(parts[:-1]) or name


def _operations(place: CellPlace) -> float:
    """Approximate operations to measure the reach of a cell: one step and its gradient per unit and lag."""
    numbers = sum(parameter.numel() for parameter in place.cell.parameters())
    return 6.0 * max(LAGS) * place.cell.size * numbers


def _longest(runs: list[RecordedRun]) -> list[RecordedRun]:
    found: dict[str, RecordedRun] = {}
    for run in runs:
        length = sum(call.x.shape[1] for call in run.calls)
        best = found.get(run.place.name)
        if best is None or length > sum(call.x.shape[1] for call in best.calls):
            found[run.place.name] = run
    return list(found.values())


class Moment(NamedTuple):
    """A moment, in seconds of wall-clock and CPU time."""

    wall: float
    cpu: float


def now() -> Moment:
    """Wall-clock time and the CPU time of this process, both in seconds."""
    return Moment(time.perf_counter(), time.process_time())


class TrainingClock:
    """Counts time, on from what a resumed position has spent; `unit` is what a target is, for lines."""

    def __init__(
        self, position: Position, settings: TrainingSettings, *, first: bool = True, unit: str = "token"
    ) -> None:
        self._settings = settings
        self._unit = unit
        self._begin = position
        self._started = now()
        self._first = first

    def spent(self) -> Moment:
        """Time spent by this process since training began, including resumed parts."""
        end = now()
        cpu = end.cpu - self._started.cpu
        if not self._first:
            return Moment(0.0, cpu)
        return Moment(self._begin.seconds + end.wall - self._started.wall, self._begin.cpu_seconds + cpu)

    def after(
        self, before: Moment, position: Position, group: BatchGroup, taken: UpdateResult, spent: Moment
    ) -> Position:
        """The position after an update that started at `before`; `spent` is summed over all processes."""
        end = now()
        return Position(
            update=position.update + 1,
            epoch=group.next_epoch,
            index=group.next_index,
            batches=group.batches,
            skipped=position.skipped + (not taken.stepped),
            seconds=spent.wall,
            cpu_seconds=spent.cpu,
            tokens=position.tokens + taken.tokens,
            total=position.total + taken.total,
            count=position.count + taken.count,
            recent_tokens=position.recent_tokens + taken.tokens,
            wall=position.wall + end.wall - before.wall,
            cpu=position.cpu + end.cpu - before.cpu,
            cycles=position.cycles,
        )

    def line(self, position: Position, taken: UpdateResult) -> Line:
        """The progress line at a position."""
        done = position.done(self._settings)
        gained = done - self._begin.done(self._settings)
        spent = position.seconds - self._begin.seconds
        return Line(
            update=position.update,
            epoch=position.epoch,
            done=done,
            loss=position.total / position.count if position.count else 0.0,
            lr=taken.rate,
            gradient_norm=taken.norm if taken.stepped else 0.0,
            feeding=taken.feeding,
            skipped=position.skipped,
            tokens=position.tokens,
            tokens_per_second=position.recent_tokens / max(position.wall, 1e-9),
            tokens_per_cpu_second=position.recent_tokens / max(position.cpu, 1e-9),
            seconds=position.seconds,
            cpu_seconds=position.cpu_seconds,
            seconds_left=spent * (1 - done) / gained if gained > 0 else 0.0,
            unit=self._unit,
        )
