"""One recipe and seed give one model, whatever else the machine does; a run that moves is told."""

import hashlib
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.commands import corpus
from tests.commands.shell import weft
from tests.train.toy import Notes, Task, quiet
from tests.train.traces import BUSY, terminate
from weft.nn import devices
from weft.train import resume, training_state
from weft.train.checkpoints import About, Checkpoints
from weft.train.loop import train
from weft.train.ready import decide_precision
from weft.train.resume import about

CPU = torch.device("cpu")


def digest_of_training(recipe: Path, run: Path) -> str:
    changes = [
        "model.encoder={use: recurrent, cell: lstm, sizes: [67], bidirectional: true, dropout: 0.3}",
        "training.max_updates=20",
        "training.validate_every=20",
        "training.precision=float32",
    ]
    weft("train", recipe, "--run", run, *changes, code=0)
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.slow
def test_a_disturbed_training_with_an_empty_cache_gives_the_same_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "one"))
    quiet_one = digest_of_training(recipe, tmp_path / "quiet")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "two"))
    done = threading.Event()

    def disturb() -> None:
        noise = torch.ones(300, 300)
        while not done.is_set():
            noise @ noise

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        busy_one = digest_of_training(recipe, tmp_path / "busy")
    finally:
        done.set()
        thread.join()
    assert busy_one == quiet_one


def test_a_run_that_moves_to_another_machine_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train(Task(on_batch=terminate(8)), tmp_path, BUSY, quiet(tmp_path))
    notes = Notes()
    monkeypatch.setattr(resume, "machine", lambda: "a slide rule")
    train(Task(), tmp_path, BUSY, quiet(tmp_path, notes))
    (said,) = [warning for warning in notes.warnings if "slide rule" in warning]
    assert "torch" in said and "last digits" in said


def test_checkpoints_name_the_machine_and_no_kernels(tmp_path: Path) -> None:
    train(Task(on_batch=terminate(8)), tmp_path, BUSY, quiet(tmp_path))
    saved = Checkpoints(tmp_path, print).newest()
    assert saved is not None
    assert saved.state.about.machine == resume.machine()
    assert saved.state.about.precision == "float32" and saved.state.about.kernels == {}


def test_a_checkpoint_with_kernels_of_an_earlier_version_resumes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        older = {"kernels": {"linear large float32 threads=1": "onednn"}}
        patch.setattr(training_state, "about", lambda optimiser, settings: about(optimiser, settings) | older)
        train(Task(on_batch=terminate(8)), tmp_path, BUSY, quiet(tmp_path))
    saved = Checkpoints(tmp_path, print).newest()
    assert saved is not None and saved.state.about.kernels == older["kernels"]
    assert train(Task(), tmp_path, BUSY, quiet(tmp_path)).exit_code == 0


@pytest.mark.parametrize(
    ("fast", "deterministic", "want"),
    [(True, False, "bfloat16"), (True, True, "float32"), (False, False, "float32")],
)
def test_auto_means_bfloat16_where_the_processor_multiplies_it(
    monkeypatch: pytest.MonkeyPatch, fast: bool, deterministic: bool, want: str
) -> None:
    monkeypatch.setattr(devices, "fast_bfloat16", lambda device: fast)
    settings = replace(BUSY, precision="auto", deterministic=deterministic)
    assert decide_precision(settings, CPU, None) == want
    assert decide_precision(settings, CPU, About(precision="bfloat16")) == "bfloat16"
    assert decide_precision(settings, CPU, About(kernels={"precision": "bfloat16"})) == "bfloat16"
    assert decide_precision(replace(settings, precision="float32"), CPU, None) == "float32"
