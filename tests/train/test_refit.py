"""What was held out is given back: the same training on all examples, whose weights become the run's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.toy import Notes, Task, quiet, settings
from tests.train.traces import Crash, crash, same, terminate
from weft.store import weights
from weft.train.loop import train
from weft.train.schedules import CosineSchedule

UPDATES, BEST = 9, 6
SCORES = [0.1, 0.2, 0.9, 0.3, 0.4]  # after updates 2, 4, 6, 8 and 9
HOW: dict[str, Any] = {
    "max_epochs": 0,
    "max_updates": UPDATES,
    "validate_every": 2,
    "metric": "score",
    "schedule": CosineSchedule(),
}


class Divided(Task):
    """Has other batches with the validation examples; each of its batches is counted."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"scores": SCORES, **given})
        self.data: Any = self

    @property
    def training(self) -> Any:
        return self.data

    @training.setter
    def training(self, data: Any) -> None:
        self.data = data

    def widen(self, run: Path) -> None:
        self.data = Task(size=5, on_batch=self.in_whole)

    def in_whole(self, number: int) -> None:
        """What to do at a batch of all examples."""


def trained(run: Path, task: Task | None = None, *, notes: Notes | None = None, **changes: Any) -> Any:
    given = settings(**{**HOW, "refit": True, **changes})
    return train(task or Divided(), run, given, quiet(run, notes))  # type: ignore[arg-type]


def model_of(run: Path) -> dict[str, torch.Tensor]:
    return weights.load(run / "model.safetensors")


@pytest.mark.parametrize("average", [0, 2])
def test_the_model_is_that_of_the_same_training_on_all_examples(tmp_path: Path, average: int) -> None:
    """Also of a mean of checkpoints, here those of the last two validations."""
    scores = [*SCORES, 1.0] if average else SCORES
    how: dict[str, Any] = {"average": average, "average_of": "last", "keep_best": 5}
    found = trained(tmp_path / "one", Divided(scores=scores), **how)
    assert found.refit and found.reason == "max_updates" and found.best == BEST
    plain = settings(**{**HOW, **how})
    direct = train(Task(size=5, scores=scores), tmp_path / "two", plain, quiet(tmp_path / "two"))  # type: ignore[arg-type]
    assert found.mean_of == direct.mean_of == ((8, 9) if average else ())
    assert same(model_of(tmp_path / "one"), model_of(tmp_path / "two"))
    assert not (tmp_path / "one" / "refit").exists()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run")
    trained(run)
    return run


@pytest.mark.parametrize("at", [0, 4, 16])
@pytest.mark.parametrize("kind", [terminate, crash])
def test_stopped_in_it_the_model_before_stands_and_it_resumes_bit_identically(
    tmp_path: Path, unbroken: Path, at: int, kind: Callable[[int], Callable[[int], None]]
) -> None:
    task = Divided()
    task.in_whole = kind(at)  # type: ignore[method-assign, assignment]
    try:
        assert trained(tmp_path, task, save_every=2).exit_code == 143
    except Crash:
        assert kind is crash
    assert weights.refit_of(tmp_path / "model.safetensors") is None
    assert weights.metadata(tmp_path / "model.safetensors")["update"] == str(BEST)
    assert trained(tmp_path, save_every=2).refit
    assert (tmp_path / "model.safetensors").read_bytes() == (unbroken / "model.safetensors").read_bytes()


def test_a_second_call_trains_nothing_and_false_brings_the_model_before_back(tmp_path: Path) -> None:
    trained(tmp_path / "plain", refit=False)
    before = (tmp_path / "plain" / "model.safetensors").read_bytes()
    trained(tmp_path / "run")
    after = (tmp_path / "run" / "model.safetensors").read_bytes()
    again = Divided(on_batch=crash(0))
    again.in_whole = crash(0)  # type: ignore[method-assign]
    assert trained(tmp_path / "run", again).refit
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == after != before
    assert not trained(tmp_path / "run", refit=False).refit
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_the_curves_are_those_of_the_training_before(tmp_path: Path) -> None:
    notes = Notes()
    trained(tmp_path / "one", notes=notes)
    trained(tmp_path / "two", refit=False)
    lines = [(tmp_path / run / "metrics.jsonl").read_text().count("\n") for run in ("one", "two")]
    assert lines[0] == lines[1]
    assert sum("training again, 6 updates" in text for text in notes.texts) == 1
