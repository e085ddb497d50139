"""A damaged checkpoint is named and the one before it used; the best and the newest are kept."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from tests.train.saved import newest, save
from tests.train.toy import Notes, Task, quiet, settings
from weft.errors import CheckpointError
from weft.store import files, run_directory
from weft.train.checkpoints import Checkpoints
from weft.train.loop import train

pytestmark = pytest.mark.usefixtures("no_threads_left")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def remove(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def nest(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


@pytest.mark.parametrize("harm", [flip, cut, remove, link, nest])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimiser.safetensors", "state.json", "manifest.json"]
)
def test_damage_is_named_and_the_one_before_it_used(
    tmp_path: Path, harm: Callable[[Path], None], name: str
) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    harm(tmp_path / "checkpoints" / "step-00000002" / name)
    if harm is link and name == "manifest.json":
        return  # what it seals is verified all the same
    update, warnings = newest(tmp_path)
    assert update == 1
    assert len(warnings) == 1
    assert "step-00000002: is damaged" in warnings[0]


def test_when_none_can_be_loaded_training_does_not_begin_anew(tmp_path: Path) -> None:
    save(tmp_path, 1)
    flip(tmp_path / "checkpoints" / "step-00000001" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"no checkpoint can be loaded, .* restore one from a copy"):
        train(Task(), tmp_path, settings(), quiet(tmp_path))


def test_a_run_of_another_version_is_refused(tmp_path: Path) -> None:
    save(tmp_path, 1)
    path = tmp_path / "checkpoints" / "step-00000001"
    state = json.loads((path / "state.json").read_bytes()) | {"format": 99, "weft": "9.9"}
    manifest = json.loads((path / "manifest.json").read_bytes())
    data = files.to_json(state)
    (path / "state.json").write_bytes(data)
    manifest["state.json"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (path / "manifest.json").write_bytes(files.to_json(manifest))
    with pytest.raises(CheckpointError, match=r"format 1, .*got 99, written by weft 9\.9"):
        Checkpoints(tmp_path, print).newest()


def test_leftovers_of_a_kill_go(tmp_path: Path) -> None:
    save(tmp_path, 1)
    for name in (".writing-step-00000002", ".removing-step-00000000"):
        (tmp_path / "checkpoints" / name).mkdir()
        (tmp_path / "checkpoints" / name / "model.safetensors").write_bytes(b"half")
    (tmp_path / ".writing-model.safetensors").write_bytes(b"half")
    assert newest(tmp_path) == (1, [])
    assert {path.name for path in tmp_path.rglob("*") if path.name[0] == "."} == set()


def test_the_best_the_newest_two_and_no_others_are_kept(tmp_path: Path) -> None:
    scores = [0.5, 0.9, 0.1, 0.8, 0.2, 0.3, 0.4]
    task = Task(scores=scores)
    chosen = settings(metric="score", keep_best=2, max_epochs=0, max_updates=7, validate_every=1)
    outcome = train(task, tmp_path, chosen, quiet(tmp_path))
    assert outcome.best == 2
    assert Checkpoints(tmp_path, print).updates() == [2, 4, 6, 7]
    index = json.loads((tmp_path / "checkpoints.json").read_bytes())
    assert (index["best"], index["last"], index["metric"], index["better"]) == (2, 7, "score", "higher")
    best = (tmp_path / "checkpoints" / "step-00000002" / "model.safetensors").read_bytes()
    assert (tmp_path / "model.safetensors").read_bytes() == best


def test_a_run_directory_holds_no_pickle(tmp_path: Path) -> None:
    train(Task(), tmp_path, settings(tensorboard=True), None)
    kinds = {path.suffix for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"}
    events = [path for path in tmp_path.rglob("*") if "tfevents" in path.name]
    assert len(events) == 1
    assert kinds - {events[0].suffix} == {".json", ".jsonl", ".safetensors"}
    assert not any(
        path.read_bytes()[:2] in (b"\x80\x02", b"PK") for path in tmp_path.rglob("*") if path.is_file()
    )


def test_two_processes_do_not_share_a_run(tmp_path: Path) -> None:
    with run_directory.lock(tmp_path), pytest.raises(CheckpointError, match="another process is training"):
        train(Task(), tmp_path, settings(), quiet(tmp_path))
    assert train(Task(), tmp_path, settings(max_epochs=1), quiet(tmp_path)).reason == "max_epochs"


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot be written to .* choose another directory"):
        train(Task(), tmp_path / "file" / "run", settings(), quiet(tmp_path))


def test_non_finite_keeps_the_state_before_it(tmp_path: Path) -> None:
    class Exploding(Task):
        def model(self) -> nn.Module:
            model = super().model()
            plain = model.loss

            def loss(batch: Any) -> Any:
                answer = plain(batch)
                return answer._replace(total=answer.total * (float("nan") if 13 in batch.numbers else 1.0))

            model.loss = loss
            return model

    # the batch of epoch 0 that fails
    at = next(number for number in range(7) if 13 in Task().plan(1).epoch(0)[number])
    task = Exploding()
    with pytest.raises(ValueError, match=f"the loss is nan.* in batch {at} of epoch 0"):
        train(task, tmp_path, settings(accumulate=1, max_epochs=1), quiet(tmp_path))
    if at:
        saved = Checkpoints(tmp_path, print).newest()
        assert saved is not None and saved.position.index == at
    notes = Notes()
    outcome = train(
        Exploding(), tmp_path, settings(accumulate=1, max_epochs=1, non_finite="skip"), quiet(tmp_path, notes)
    )
    assert (outcome.reason, outcome.update) == ("max_epochs", 7)
    assert sum("update was skipped" in text for text in notes.warnings) == 1
