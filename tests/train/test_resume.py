"""Law 10: a run broken anywhere and gone on with is, bit for bit, the unbroken run."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.slow import leading
from tests.train.toy import ROWS, Notes, Task, quiet, settings
from tests.train.traces import (
    BUSY,
    Crash,
    Trace,
    crash,
    measured,
    resumed,
    same,
    terminate,
    unbroken,
    vars_of,
)
from weft.errors import CheckpointError, ConfigError
from weft.store import weights
from weft.train.loop import train
from weft.train.optimisers import SGD
from weft.train.schedules import CosineSchedule

BATCHES = 21  # 3 epochs of 7, in 9 updates


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return unbroken(tmp_path_factory.mktemp("whole"), BUSY)


def test_the_unbroken_run_is_what_the_others_are_compared_with(whole: Trace) -> None:
    assert whole.outcome.reason == "max_epochs"
    assert len(whole.ids) == BATCHES
    assert all(
        sorted(n for ids in whole.ids[at : at + 7] for n in ids) == list(range(ROWS)) for at in (0, 7, 14)
    )
    assert [line["update"] for line in whole.lines if line["event"] == "update"] == list(range(1, 10))
    assert [line["update"] for line in whole.lines if line["event"] == "validation"] == [2, 4, 6, 8, 9]


@pytest.mark.parametrize(
    "at", [at if at % 5 == 0 else pytest.param(at, marks=pytest.mark.slow) for at in range(BATCHES)]
)
def test_stopped_by_sigterm_at_any_batch(tmp_path: Path, whole: Trace, at: int) -> None:
    first = Task(on_batch=terminate(at))
    assert resumed(tmp_path, BUSY, first, Task()).differs(whole) == []
    assert len(first.ids) - at <= BUSY.accumulate  # at once, after the update that was under way


@pytest.mark.parametrize("at", range(1, BATCHES, 4))
@pytest.mark.parametrize("save_every", leading([4, 1]))
def test_crashed_at_any_batch(tmp_path: Path, at: int, save_every: int, whole: Trace) -> None:
    chosen = settings(**{**vars_of(BUSY), "save_every": save_every})
    first = Task(on_batch=crash(at))
    with pytest.raises(Crash):
        train(first, tmp_path, chosen, quiet(tmp_path))
    second = Task()
    outcome = train(second, tmp_path, chosen, quiet(tmp_path))
    read_again = whole.ids[BATCHES - len(second.ids) :]
    assert second.ids == read_again
    assert Trace(tmp_path, whole.ids, outcome).differs(whole) == []


@pytest.mark.parametrize(  # five validations, and that of the mean
    "at", [0, 5, *(pytest.param(at, marks=pytest.mark.slow) for at in range(1, 5))]
)
@pytest.mark.parametrize("kind", [terminate, crash])
def test_stopped_in_any_validation(tmp_path: Path, whole: Trace, at: int, kind: Any) -> None:
    assert resumed(tmp_path, BUSY, Task(on_validation=kind(at)), Task()).differs(whole) == []


def test_stopped_at_every_update_in_turn(tmp_path: Path, whole: Trace) -> None:
    ids: list[list[int]] = []
    for _ in range(9):
        part = Task(on_batch=terminate(0))
        assert train(part, tmp_path, BUSY, quiet(tmp_path)).reason == "interrupted"
        ids += part.ids
    last = Task()
    outcome = train(last, tmp_path, BUSY, quiet(tmp_path))
    assert Trace(tmp_path, ids + last.ids, outcome).differs(whole) == []


@pytest.mark.parametrize("at", leading([4, 9, 0, 12], 2))
def test_patience_is_remembered(tmp_path: Path, at: int) -> None:
    chosen = settings(
        optimiser=SGD(lr=0.1, momentum=0.9),
        schedule=CosineSchedule(),
        validate_every=1,
        metric="score",
        patience=3,
        max_epochs=5,
    )
    scores = [0.1, 0.4, 0.2, 0.3, 0.4, 0.9, 0.9]
    (tmp_path / "whole").mkdir()
    expected = unbroken(tmp_path / "whole", chosen, scores=scores)
    assert (expected.outcome.reason, expected.outcome.update, expected.outcome.best) == ("patience", 5, 2)
    run = tmp_path / "broken"
    run.mkdir()
    first = Task(on_batch=terminate(at), scores=scores)
    stopped = train(first, run, chosen, quiet(run))
    second = Task(scores=scores[first.validations :])
    outcome = train(second, run, chosen, quiet(run))
    assert stopped.reason == "interrupted"
    assert Trace(run, first.ids + second.ids, outcome).differs(expected) == []


def test_without_seeds_from_the_position_it_would_not_be_bit_equal(
    tmp_path: Path, whole: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("ready", "training_state", "update"):
        monkeypatch.setattr(f"weft.train.{place}.settle", lambda number, device: None)
    first, second = Task(on_batch=terminate(8)), Task()
    train(first, tmp_path, BUSY, quiet(tmp_path))
    torch.manual_seed(99)
    outcome = train(second, tmp_path, BUSY, quiet(tmp_path))
    differs = Trace(tmp_path, first.ids + second.ids, outcome).differs(whole)
    assert {"weights", "optimiser", "lines"} <= set(differs)
    assert "ids" not in differs


def test_a_finished_run_stays_as_it_is(tmp_path: Path, whole: Trace) -> None:
    ids = unbroken(tmp_path, BUSY).ids
    again = Task()
    outcome = train(again, tmp_path, BUSY, quiet(tmp_path))
    assert (again.ids, again.validations) == ([], 0)
    assert Trace(tmp_path, ids, outcome).differs(whole) == []


def test_a_longer_end_goes_on_from_the_shorter(tmp_path: Path) -> None:
    short, long = settings(max_updates=4, max_epochs=0), settings(max_updates=9, max_epochs=0)
    (tmp_path / "whole").mkdir()
    expected = unbroken(tmp_path / "whole", long)
    run = tmp_path / "parts"
    run.mkdir()
    ids = unbroken(run, short).ids
    part = unbroken(run, long)
    assert ids + part.ids == expected.ids
    assert same(part.weights, expected.weights)


def test_a_lost_index_is_rebuilt(tmp_path: Path, whole: Trace) -> None:
    first = Task(on_batch=terminate(14))
    train(first, tmp_path, BUSY, quiet(tmp_path))
    (tmp_path / "checkpoints.json").write_text("{broken")
    second, notes = Task(), Notes()
    outcome = train(second, tmp_path, BUSY, quiet(tmp_path, notes))
    assert "checkpoints.json: cannot be read" in notes.warnings[0]
    assert Trace(tmp_path, first.ids + second.ids, outcome).differs(whole) == []


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_it_used(
    tmp_path: Path, whole: Trace
) -> None:
    first = Task(on_batch=terminate(16))
    train(first, tmp_path, BUSY, quiet(tmp_path))
    newest = sorted((tmp_path / "checkpoints").glob("step-*"))[-1]
    data = bytearray((newest / "optimiser.safetensors").read_bytes())
    data[-3] ^= 1
    (newest / "optimiser.safetensors").write_bytes(data)
    second, notes = Task(), Notes()
    outcome = train(second, tmp_path, BUSY, quiet(tmp_path, notes))
    assert newest.name in notes.warnings[0]
    assert "optimiser.safetensors does not have the content" in notes.warnings[0]
    assert Trace(tmp_path, whole.ids, outcome).differs(whole) == []


def test_an_end_by_time_saves_validates_and_finishes(tmp_path: Path) -> None:
    task = Task()
    chosen = settings(max_epochs=0, max_minutes=0.005, schedule=CosineSchedule(), validate_every=1000)
    outcome = train(task, tmp_path, chosen, quiet(tmp_path))
    assert (outcome.reason, outcome.best, task.validations) == ("max_minutes", outcome.update, 1)
    assert weights.load(tmp_path / "model.safetensors").keys() == task.built.state_dict().keys()
    rates = [line["lr"] for line in measured(tmp_path, "update")]
    assert rates == sorted(rates, reverse=True)  # the schedule follows the clock
    assert rates[-1] < 0.5 * rates[0]


@pytest.mark.parametrize(
    ("changes", "task", "sentence"),
    [
        ({"seed": 2}, {}, "seed 1, .*got 2"),
        ({"optimiser": SGD()}, {}, "optimiser Adam, .*got SGD"),
        ({}, {"size": 5}, "expected 7 batches in epoch 1, .*got 6"),
    ],
)
def test_what_does_not_fit_the_run_is_refused(
    tmp_path: Path, changes: dict[str, Any], task: dict[str, Any], sentence: str
) -> None:
    train(Task(on_batch=terminate(9)), tmp_path, BUSY, quiet(tmp_path))
    before = snapshot(tmp_path)
    with pytest.raises(CheckpointError, match=sentence):
        train(Task(**task), tmp_path, settings(**{**vars_of(BUSY), **changes}), quiet(tmp_path))
    assert snapshot(tmp_path) == before


def test_another_model_is_refused(tmp_path: Path) -> None:
    train(Task(on_batch=terminate(3)), tmp_path, BUSY, quiet(tmp_path))

    class Other(Task):
        def model(self) -> torch.nn.Module:
            made = super().model()
            made.embed = torch.nn.Embedding(13, 5)
            made.extra = torch.nn.Linear(1, 1)
            return made

    with pytest.raises(CheckpointError, match=r"a different model from the recipe \(extra.weight is missing"):
        train(Other(), tmp_path, BUSY, quiet(tmp_path))


def test_an_unknown_metric_is_refused_before_anything_happens(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="bleu"):
        train(Task(), tmp_path / "run", settings(metric="bleu"), quiet(tmp_path))
    assert not (tmp_path / "run").exists()


def snapshot(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run.rglob("*") if path.is_file()}
