"""What does not fit a run is refused, and the run stays as it is."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.toy import Task, quiet, settings
from tests.train.traces import BUSY, terminate, vars_of
from weft.errors import CheckpointError, ConfigError
from weft.train.loop import train
from weft.train.optimisers import SGD


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
