"""Monitors see what is there, cost what they may, and change nothing."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.slow import leading
from tests.train.toy import WORDS, Batch, Notes, Task, quiet, settings
from tests.train.traces import measured, same, terminate
from tests.train.traces import measured as lines
from weft.errors import ConfigError
from weft.nn.cells.delta import Delta
from weft.nn.cells.gru import GRU
from weft.nn.heads.head import Loss
from weft.nn.recurrent import Cells, Stack
from weft.store import weights
from weft.train import monitors
from weft.train.loop import train
from weft.train.monitors import SHARE, Moment, Monitors, TrainingClock
from weft.train.position import BatchGroup, Position
from weft.train.reporting import Reporter
from weft.train.schedules import LinearSchedule
from weft.train.settings import TrainingSettings
from weft.train.trackers import Tensorboard
from weft.train.update import UpdateResult

BUSY = settings(clip_norm=0.1, workers=1)


class Model(nn.Module):
    """A language model of two layers with dropout."""

    def __init__(self, cell: Cells = GRU) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 5)
        self.stack = Stack(5, (5, 7), cell=cell, dropout=0.3)
        self.output = nn.Linear(7, WORDS)

    def loss(self, batch: Batch) -> Loss:
        h, _ = self.stack(self.embed(batch.tokens[:, :-1]), mask=batch.mask[:, 1:])
        logp = self.output(h).log_softmax(-1)
        picked = logp.gather(2, batch.tokens[:, 1:, None]).squeeze(2)
        return Loss(-(picked * batch.mask[:, 1:]).sum(), batch.mask[:, 1:].sum())


class Recurrent(Task):
    """The toy task for that model."""

    def model(self) -> nn.Module:
        return Model()

    def plan(self, seed: int) -> Any:
        class Rows:  # a row without a word after its first would have nothing to learn
            def epoch(self, number: int) -> list[np.ndarray]:
                return [np.arange(at, at + 4) for at in range(0, 24, 4)]

        return Rows()


def test_a_run_that_measures_is_bit_equal_to_one_that_does_not(tmp_path: Path) -> None:
    found = []
    for every in (False, 1, True):
        run = tmp_path / str(every)
        train(Recurrent(), run, replace(BUSY, monitors=every), quiet(run))
        found.append(weights.load(run / "model.safetensors"))
    assert all(same(found[0], other) for other in found[1:])


@pytest.mark.parametrize("at", leading([3, 11]))
def test_a_run_that_measures_resumes_bit_equal(tmp_path: Path, at: int) -> None:
    chosen = replace(BUSY, monitors=1)
    train(Recurrent(), tmp_path / "whole", chosen, quiet(tmp_path / "whole"))
    broken = tmp_path / "broken"
    assert train(Recurrent(on_batch=terminate(at)), broken, chosen, quiet(broken)).exit_code == 143
    train(Recurrent(), broken, chosen, quiet(broken))
    whole = weights.load(tmp_path / "whole" / "model.safetensors")
    assert same(weights.load(broken / "model.safetensors"), whole)
    assert lines(broken, "monitor") == lines(tmp_path / "whole", "monitor")


def test_what_is_measured_is_numpy_s(tmp_path: Path) -> None:
    notes = Notes()
    train(Recurrent(), tmp_path, replace(BUSY, monitors=1, max_epochs=2), quiet(tmp_path, notes))
    measured, updates = lines(tmp_path, "monitor"), lines(tmp_path, "update")
    assert [line["update"] for line in measured] == [line["update"] for line in updates] == [1, 2, 3, 4]
    for line, update in zip(measured, updates, strict=True):
        norms = [value for name, value in line["values"].items() if name.startswith("gradient_norm/")]
        assert len(norms) == 4  # embedding, two layers, output
        assert math.hypot(*norms) == pytest.approx(update["gradient_norm"], rel=1e-4)
    from weft.train.checkpoints import Checkpoints

    newest = Checkpoints(tmp_path, print).newest()
    assert newest is not None
    for layer in ("stack.forwards.0", "stack.forwards.1"):
        values = measured[-1]["values"]
        gates = np.split(newest.weights[f"{layer}.weight_h"].numpy(), 3)
        largest = max(np.linalg.svd(gate, compute_uv=False)[0] for gate in gates)
        radius = max(np.abs(np.linalg.eigvals(gate)).max() for gate in gates)
        assert values[f"{layer}/sigma_max"] == pytest.approx(largest, rel=1e-4)
        assert values[f"{layer}/spectral_radius"] == pytest.approx(radius, rel=1e-4)
        assert 0 < values[f"{layer}/reach_2"] < values[f"{layer}/reach_1"] < 2
        assert f"{layer}/reach_10" not in values  # no row is as long
        ends = {f"{layer}/{gate}_{end}" for gate in ("reset_gate", "update_gate") for end in ("shut", "open")}
        assert ends <= values.keys()
        assert values[f"{layer}/half_life"] > 0
    assert any("layer 1 (GRU): the gradient" in text for text in notes.texts)


class DeltaRule(Recurrent):
    """The toy task for a model whose state is multiplied by matrices."""

    def model(self) -> nn.Module:
        return Model(Delta)


def test_the_half_life_of_a_delta_rule_counts_what_its_matrices_overwrite(tmp_path: Path) -> None:
    train(DeltaRule(), tmp_path, replace(BUSY, monitors=1, max_epochs=1), quiet(tmp_path))
    lives = [line["values"]["stack.forwards.1/half_life"] for line in lines(tmp_path, "monitor")]
    assert lives and all(0 < life < math.inf for life in lives)  # its forget gate is always 1


def test_tensorboard_gets_them_and_false_means_never(tmp_path: Path) -> None:
    board = Tensorboard().report(tmp_path, {}, Notes())
    train(Recurrent(), tmp_path, replace(BUSY, monitors=3), Reporter(quiet(tmp_path), board))
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"monitors/stack.forwards.1/reach_5" in events.read_bytes()
    train(Recurrent(), tmp_path / "off", BUSY, quiet(tmp_path / "off"))
    assert lines(tmp_path / "off", "monitor") == []


def test_measures_take_at_most_their_share_of_the_time_of_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = replace(BUSY, monitors=True, log_every=2)
    watched, clock = Monitors(Recurrent(), Model(), chosen, Notes()), [0.0]
    monkeypatch.setattr(monitors.time, "perf_counter", lambda: clock[0])

    def costly(*_: object) -> dict[str, float]:
        clock[0] += 0.5
        return {}

    monkeypatch.setattr(watched, "_measure", costly)
    taken, group = UpdateResult(1.0, 1.0, 1, 1.0, 0.1, 1.0, True), BatchGroup(0, 0, [np.arange(4)], 1, 1, 0)
    for update in range(1, 1001):
        watched.after(Position(update=update, wall=0.4 * (1 + (update - 1) % 2)), group, taken)
        if update > 60:
            assert clock[0] <= SHARE * 0.4 * update + 0.5 * (clock[0] == 0.5)
    assert 0.02 * 400 < clock[0] <= SHARE * 400


def test_trouble_ends_the_measures_and_not_the_training(tmp_path: Path) -> None:
    class Odd(GRU):
        def shown(self, state: Any) -> torch.Tensor:
            raise RuntimeError("no state to show")

    class OddTask(Recurrent):
        def model(self) -> nn.Module:
            model = Model()
            model.stack.forwards[1] = Odd(5, 7)
            return model

    notes = Notes()
    outcome = train(OddTask(), tmp_path, replace(BUSY, monitors=1), quiet(tmp_path, notes))
    assert outcome.reason == "max_epochs"
    assert notes.warnings == ["monitors: measuring stops (RuntimeError: no state to show)"]


def test_a_number_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training.monitors: "):
        TrainingSettings(max_updates=1, monitors=-1)


CPU, WALL = 2.0, 14.0  # seconds of a batch on a machine that gives this process a seventh of a core


class Busy:
    """A machine whose time passes only while a batch is read."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wall = self.cpu = 1000.0
        for module in ("monitors", "training_state"):
            patch.setattr(f"weft.train.{module}.now", lambda: Moment(self.wall, self.cpu))

    def pass_batch(self, also: Any = None) -> Any:
        def on_batch(number: int) -> None:
            self.wall, self.cpu = self.wall + WALL, self.cpu + CPU
            if also:
                also(number)

        return on_batch


BUDGET = settings(
    max_epochs=0,
    max_cpu_minutes=24 / 60,
    accumulate=1,
    schedule=LinearSchedule(),
    validate_every=1000,
    log_every=1,
)


def test_a_budget_of_the_processor_ends_after_its_seconds_however_busy_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Busy(monkeypatch)
    outcome = train(Task(on_batch=busy.pass_batch()), tmp_path, BUDGET, quiet(tmp_path))
    assert (outcome.reason, outcome.update) == ("max_cpu_minutes", 12)  # 24 / CPU
    taken = measured(tmp_path, "update")
    assert [line["cpu_seconds"] for line in taken] == [CPU * n for n in range(1, 13)]
    assert taken[-1]["seconds"] == 12 * WALL
    peak = taken[0]["lr"]  # the first update completes nothing that was known before it
    assert [line["lr"] for line in taken[1:]] == pytest.approx(
        [peak * (1 - n / 12) for n in range(1, 12)], rel=1e-9
    )
    assert taken[3]["seconds_left"] == pytest.approx(8 * WALL)


@pytest.mark.parametrize("at", [0, 5, 10])
def test_a_resumed_training_has_spent_what_the_unbroken_one_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for run in (whole, parts):
        run.mkdir()
    train(Task(on_batch=Busy(monkeypatch).pass_batch()), whole, BUDGET, quiet(whole))
    stopped = train(Task(on_batch=Busy(monkeypatch).pass_batch(terminate(at))), parts, BUDGET, quiet(parts))
    assert stopped.reason == "interrupted"
    train(Task(on_batch=Busy(monkeypatch).pass_batch()), parts, BUDGET, quiet(parts))
    for one, other in zip(measured(whole, "update"), measured(parts, "update"), strict=True):
        for name in ("update", "cpu_seconds", "seconds", "lr", "loss"):
            assert one[name] == other[name], name


def test_the_wall_clock_of_several_processes_is_the_first_ones_and_their_cpu_time_is_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = iter([Moment(5.0, 50.0), Moment(7.0, 70.0), Moment(9.0, 51.5), Moment(11.0, 72.0)])
    monkeypatch.setattr(monitors, "now", lambda: next(passed))
    begin, chosen = Position(update=3, seconds=100.0, cpu_seconds=200.0), settings(max_cpu_minutes=9)
    first, second = TrainingClock(begin, chosen), TrainingClock(begin, chosen, first=False)
    assert first.spent() == Moment(104.0, 201.5)
    assert second.spent() == Moment(0.0, 2.0)
