"""Budgets of time: by the clock on the wall and by the processor, over resumed parts too."""

from pathlib import Path
from typing import Any

import pytest

from tests.train.toy import Task, quiet, settings
from tests.train.traces import measured, terminate
from weft.train import monitors
from weft.train.loop import train
from weft.train.monitors import Moment, TrainingClock
from weft.train.position import Position
from weft.train.schedules import LinearSchedule

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
