"""Cosine restarts: the weights at the end of each cycle are kept, whatever interrupts the training."""

import math
from contextlib import suppress
from pathlib import Path

import pytest

from tests.train.toy import Task, quiet, settings
from tests.train.traces import Crash, crash, same, terminate
from weft.store import weights
from weft.train.loop import train
from weft.train.schedules import CosineRestarts, CosineSchedule

CYCLES = settings(max_updates=11, max_epochs=0, validate_every=100, schedule=CosineRestarts(cycles=3))


def kept(run: Path) -> dict[str, dict[str, object]]:
    return {one.stem: dict(weights.load(one)) for one in sorted((run / "cycles").iterdir())}


def test_a_cycle_begins_near_1_and_ends_at_the_floor() -> None:
    part = CosineRestarts(cycles=3, warmup=2, floor=0.1)
    factors = [part.factor(update, update / 14, {}) for update in range(1, 15)]
    cycle = [0.1 + 0.9 * (1 + math.cos(math.pi * step / 4)) / 2 for step in (1, 2, 3, 4)]
    assert factors == pytest.approx([0.5, 1, *cycle, *cycle, *cycle])
    ended = [part.cycles_ended(update, update / 14) for update in range(1, 15)]
    assert ended == [0] * 5 + [1] * 4 + [2] * 4 + [3]
    one = CosineRestarts(cycles=1)
    assert [one.factor(n, n / 7, {}) for n in range(8)] == [
        CosineSchedule().factor(n, n / 7, {}) for n in range(8)
    ]
    assert [part.cycles_ended(n, 0.0) for n in (0, 50)] == [0, 0]  # no planned end


def test_each_cycle_ends_with_a_validation_and_its_weights_are_kept(tmp_path: Path) -> None:
    train(Task(), tmp_path, CYCLES, quiet(tmp_path))
    whole = kept(tmp_path)
    assert list(whole) == ["step-00000004", "step-00000008", "step-00000011"]
    assert weights.metadata(tmp_path / "cycles" / "step-00000008.safetensors")["update"] == "8"
    last = weights.load(tmp_path / "checkpoints" / "step-00000011" / "model.safetensors")
    assert same(whole["step-00000011"], last)  # type: ignore[arg-type]
    for number, stop in enumerate((terminate, crash)):
        run = tmp_path / str(number)
        for at in (3, 4, 8):
            with suppress(Crash):
                train(Task(on_batch=stop(at)), run, CYCLES, quiet(run))
        train(Task(), run, CYCLES, quiet(run))
        again = kept(run)
        assert list(again) == list(whole)
        assert all(same(again[name], whole[name]) for name in whole)  # type: ignore[arg-type]
