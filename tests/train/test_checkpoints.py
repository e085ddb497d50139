"""Checkpoints are whole or not there: whatever fails, the newest complete one loads."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from tests.train.toy import Model, Notes, Task, quiet, settings
from weft.errors import CheckpointError
from weft.train import files, optimiser_state, weights
from weft.train.checkpoints import Checkpoints
from weft.train.history import History
from weft.train.loop import train
from weft.train.optimisers.adamw import AdamW
from weft.train.optimisers.sgd import SGD
from weft.train.position import Position

ROOT = Path(__file__).resolve().parents[2]
HISTORY = History("loss", False)


def made(seed: int) -> tuple[Model, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = Model()
    optimiser = AdamW().build(model)
    model.loss(Task().batch(torch.arange(5).numpy())).mean.backward()
    optimiser.step()
    return model, optimiser


def save(run: Path, update: int, history: History = HISTORY) -> Model:
    model, optimiser = made(update)
    Checkpoints(run, print).save(model, optimiser, Position(update=update), history, {"seed": 1})
    return model


def newest(run: Path) -> tuple[int, list[str]]:
    """The update of the newest checkpoint, whose weights are those of `made`, and the warnings."""
    warnings: list[str] = []
    saved = Checkpoints(run, warnings.append).newest()
    assert saved is not None
    for name, tensor in made(saved.position.update)[0].state_dict().items():
        assert torch.equal(saved.weights[name], tensor)
    return saved.position.update, warnings


class Fault:
    """Fails, or whatever else is told, at the n-th call that changes the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, act: Callable[[], None]) -> None:
        self.calls, self.at, self.act = 0, at, act
        for name in ("fsync", "rename", "replace"):
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name)))
        monkeypatch.setattr(Path, "mkdir", self.wrap(Path.mkdir))
        monkeypatch.setattr(files, "open", self.opened, raising=False)

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.count()
            return call(*arguments, **options)

        return wrapped

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.act()

    def opened(self, path: Path, mode: str) -> Any:
        self.count()
        file = open(path, mode)  # noqa: SIM115
        fault = self

        class Writer:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *error: object) -> None:
                file.close()

            def write(self, data: bytes) -> None:
                file.write(data[: len(data) // 2])
                file.flush()
                fault.count()
                file.write(data[len(data) // 2 :])

            def flush(self) -> None:
                file.flush()

            def fileno(self) -> int:
                return file.fileno()

        return Writer()


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def calls_of_a_save(run: Path) -> int:
    save(run, 1)
    with pytest.MonkeyPatch.context() as patch:
        fault = Fault(patch, 0, no_space)
        save(run, 2)
    return fault.calls


def test_a_full_disk_at_any_call_keeps_the_old_one(tmp_path: Path) -> None:
    calls = calls_of_a_save(tmp_path / "count")
    assert (
        calls >= 4 * 3 + 4
    )  # four files opened, written, flushed; directory made, flushed, renamed, flushed
    for at in range(1, calls + 1):
        run = tmp_path / str(at)
        save(run, 1)
        with pytest.MonkeyPatch.context() as patch:
            Fault(patch, at, no_space)
            with pytest.raises(
                CheckpointError, match=r"step-00000002: .*No space left .* update 1 is kept; make room"
            ):
                save(run, 2)
        # After the rename the new one is complete, though its directory could not be flushed.
        assert newest(run) == ((2 if at == calls else 1), [])
        assert [path.name for path in (run / "checkpoints").glob(".*")] == []


def test_a_full_disk_in_the_index_keeps_the_old_index_and_model(tmp_path: Path) -> None:
    save(tmp_path, 1)
    checkpoints = Checkpoints(tmp_path, print)
    history = HISTORY.add(1, {"loss": 2.0})
    checkpoints.write_index(history)
    save(tmp_path, 2)
    for at in range(1, 6):
        with pytest.MonkeyPatch.context() as patch:
            Fault(patch, at, no_space)
            with pytest.raises(CheckpointError, match="could not be written"):
                checkpoints.write_index(history.add(2, {"loss": 1.0}))
        assert checkpoints.index()["best"] == (1 if at < 5 else 2)
        assert checkpoints.published() == "1"
    checkpoints.write_index(history.add(2, {"loss": 1.0}))
    assert checkpoints.published() == "2"


KILLS = """
import os, sys, json
from pathlib import Path
import pytest, torch
torch.set_num_threads(1)
from tests.train import test_checkpoints as suite
from weft.train.checkpoints import Checkpoints

def in_child(work):
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

base, found = Path(sys.argv[1]), []
history = suite.HISTORY.add(1, {"loss": 2.0})
for at in range(1, 1000):
    run = base / str(at)
    suite.save(run, 1)
    Checkpoints(run, print).write_index(history)

    def work():
        suite.Fault(pytest.MonkeyPatch(), at, lambda: os.kill(os.getpid(), 9))
        suite.save(run, 2, history)
        checkpoints = Checkpoints(run, print)
        checkpoints.write_index(history.add(2, {"loss": 1.0}))
        suite.save(run, 3)
        checkpoints.keep([])

    code = in_child(work)
    warnings = []
    update, told = suite.newest(run)
    index = Checkpoints(run, warnings.append).index()
    suite.weights.load(run / "model.safetensors")
    found.append([code, update, len(told) + len(warnings), index["best"]])
    if code == 0:
        break
limit = base / "limit"
suite.save(limit, 1)

def full():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    try:
        suite.save(limit, 2)
    except suite.CheckpointError as error:
        (base / "said").write_text(str(error))

in_child(full)
found.append([(base / "said").read_text(), *suite.newest(limit)])
print(json.dumps(found))
"""


def test_kill_9_at_any_call_leaves_a_run_that_loads(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    *found, limit = json.loads(done.stdout.splitlines()[-1])
    assert len(found) > 40
    assert [code for code, *_ in found] == [-signal.SIGKILL] * (len(found) - 1) + [0]
    updates = [update for _, update, _, _ in found]
    assert updates == sorted(updates)  # never back once a newer one was complete
    assert set(updates) == {1, 2, 3}
    assert [warned for _, _, warned, _ in found] == [0] * len(found)  # killed is not damaged
    assert {best for *_, best in found} == {1, 2}
    said, update, warnings = limit
    assert "File too large" in said and "update 1 is kept" in said
    assert (update, warnings) == (1, [])


TRAINING = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.train.toy import Task, quiet, settings
from weft.train.loop import train

print("ready", flush=True)
run = Path(sys.argv[1])
train(Task(), run, settings(save_every=1, max_epochs=int(sys.argv[2])), quiet(run))
print("finished", flush=True)
"""


@pytest.mark.slow
def test_kill_9_of_a_training_process_loses_nothing(tmp_path: Path) -> None:
    epochs = 40
    expected = tmp_path / "whole"
    train(Task(), expected, settings(save_every=1000, max_epochs=epochs), quiet(expected))
    run, ends = tmp_path / "killed", []
    for seconds in [0.02, 0.4, 0.15, None]:
        with subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(run), str(epochs)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            ends.append(process.returncode)
    assert ends[0] == -signal.SIGKILL
    assert ends[-1] == 0
    one, other = (Checkpoints(path, print).newest() for path in (expected, run))
    assert one is not None and other is not None
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
    assert all(torch.equal(one.optimiser[name], other.optimiser[name]) for name in one.optimiser)


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
    with pytest.raises(CheckpointError, match=r"has format 99, written by weft 9\.9"):
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


def test_tied_weights_are_stored_once_and_named(tmp_path: Path) -> None:
    model = Model()
    data = weights.pack(model.state_dict())
    assert "output.weight" not in safetensors.torch.load(data)
    assert weights.unpack(data).keys() == model.state_dict().keys()
    fresh = Model()
    weights.restore(fresh, weights.unpack(data), "here")
    assert fresh.output.weight is fresh.embed.weight
    assert torch.equal(fresh.embed.weight, model.embed.weight)


def test_the_same_weights_give_the_same_bytes() -> None:
    model = Model()
    assert len({weights.pack(model.state_dict(), update="1", by="test") for _ in range(20)}) == 1


def test_views_of_one_block_are_stored_each(tmp_path: Path) -> None:
    block = torch.arange(6.0)
    data = weights.pack({"a": block[:3], "b": block[3:], "c": block.view(2, 3).mT, "empty": block[:0]})
    read = weights.unpack(data)
    assert read["b"].tolist() == [3.0, 4.0, 5.0]
    assert read["c"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert read["empty"].shape == (0,)


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04K\x01.", b"\xff" * 7 + b"\x7f{}", b"\x02" + b"\0" * 7 + b"[]"]
)
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: is damaged"):
        weights.load(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"cannot be read \(No such file"):
        weights.load(tmp_path / "missing.safetensors")


@pytest.mark.parametrize("part", [SGD(momentum=0.9), SGD(), AdamW()])
def test_an_optimiser_goes_on_by_names_as_if_never_stored(part: Any) -> None:
    def take(model: nn.Module, optimiser: torch.optim.Optimizer, times: int) -> None:
        for _ in range(times):
            optimiser.zero_grad()
            model.loss(Task().batch(torch.arange(7).numpy())).mean.backward()
            optimiser.step()

    torch.manual_seed(3)
    model = Model(0.0)
    optimiser = part.build(model)
    take(model, optimiser, 2)
    tensors, numbers = optimiser_state.collect(model, optimiser)
    assert all(name.split("/")[1] in dict(model.named_parameters()) for name in tensors)
    other = Model(0.0)
    weights.restore(other, weights.unpack(weights.pack(model.state_dict())), "here")
    again = part.build(other)
    stored = weights.unpack(weights.pack(tensors))
    optimiser_state.restore(other, again, stored, json.loads(json.dumps(numbers)), "here")
    take(model, optimiser, 2)
    take(other, again, 2)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


def test_two_processes_do_not_share_a_run(tmp_path: Path) -> None:
    with files.claim(tmp_path), pytest.raises(CheckpointError, match="another process trains this run"):
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

    at = next(
        number for number in range(7) if 13 in Task().plan(1).epoch(0)[number]
    )  # the batch of epoch 0 that fails
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
    assert sum("this update was left out" in text for text in notes.warnings) == 1


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    yield
    assert threading.active_count() == 1
