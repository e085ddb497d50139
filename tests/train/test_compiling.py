"""`training.compile` trains what the methods as they are written train, and says so where it cannot.

What is compiled differs from what is written in the order of sums and, with dropout, in the numbers drawn.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.commands import corpus
from tests.commands.shell import Answer, refused, weft
from tests.train.several import Pairs
from tests.train.test_processes import furthest, trained
from tests.train.toy import ROWS, Notes, Task, quiet, settings
from tests.train.traces import measured
from weft.errors import ConfigError
from weft.nn.devices import Region, compile_regions, plainly
from weft.probe import probe
from weft.train.loop import train
from weft.train.settings import TrainingSettings

# torch's own, when it loads its compiler
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
COMPILER = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no g++ is here, so nothing that torch compiles was tested"
)


@pytest.fixture(autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One place for what is compiled in all these tests, and nothing traced left behind."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "compiled"))
    yield
    torch._dynamo.reset()


def losses(run: Path) -> list[float]:
    return [line["loss"] for line in measured(run, "update")]


@COMPILER
@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_compiled_and_written_blocks_train_the_same(tmp_path: Path, processes: int) -> None:
    """In float64, three batches an update; two processes deal them out."""
    asked = {"model": "transformer", "max_updates": 12}
    plain = trained(tmp_path / "plain", 1, **asked)
    compiled = trained(tmp_path / "compiled", processes, compile=True, **asked)
    assert furthest(plain, compiled) < 1e-6
    assert losses(tmp_path / "compiled") == pytest.approx(losses(tmp_path / "plain"), rel=1e-9)
    assert "4 blocks of the model will be compiled" in (tmp_path / "compiled" / "notes.txt").read_text()


@COMPILER
@pytest.mark.slow
def test_with_computing_again_too(tmp_path: Path) -> None:
    asked = {"model": "transformer", "max_updates": 7}
    plain = trained(tmp_path / "plain", 1, **asked)
    again = trained(tmp_path / "again", 1, compile=True, checkpoint_activations=True, **asked)
    assert furthest(plain, again) < 1e-6


def test_with_sharded_parameters_it_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.compile: "):
        TrainingSettings(max_updates=1, compile=True, sharding="full")


def blocks(dropout: float = 0.0) -> tuple[Pairs, torch.nn.Module]:
    task = Pairs("transformer", 4, dropout, torch.float32)
    torch.manual_seed(5)
    return task, task.model().train()


def compiled_calls(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Filled with the names of regions as what was compiled of them is called; the written code stands in."""
    called: list[str] = []
    for module in model.modules():
        for region in [one for one in vars(module).values() if isinstance(one, Region)]:

            def call(*arguments: object, region: Region = region) -> object:
                called.append(region._name)
                return region._method(*arguments)

            monkeypatch.setattr(region, "_compiled", call)
    return called


def test_compiled_code_serves_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    task, model = blocks()
    assert compile_regions(model) == 4
    called = compiled_calls(model, monkeypatch)
    batch = task.batch(torch.arange(ROWS).numpy())
    whole = model.loss(batch).total
    assert called == ["encode", "encode", "_attended", "_attended"]
    called.clear()
    with probe() as seen:
        assert torch.equal(model.loss(batch).total, whole)
    assert seen["self_attention"] and seen["cross_attention"]
    with plainly():
        model.loss(batch)
    with torch.no_grad():
        model.loss(batch)
    model.eval().loss(batch)
    assert called == []


def test_parameters_keep_their_names() -> None:
    (_, plain), (_, compiled) = blocks(), blocks()
    compile_regions(compiled)
    assert list(plain.state_dict()) == list(compiled.state_dict())


def test_without_a_compiler_training_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    recipe = corpus.make(tmp_path / "toy")
    said = refused(weft("train", recipe, "--run", tmp_path / "run", "training.compile=true"))
    assert "cannot find the C++ compiler no-such-compiler" in said
    assert "training.compile: false" in said
    assert not list((tmp_path / "run").glob("tokenizer*"))  # nothing was made ready


@COMPILER
@pytest.mark.slow
def test_a_compiler_that_fails_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    recipe = corpus.make(tmp_path / "toy")
    # In a process of its own: what this one has compiled already would serve.
    command = [
        sys.executable,
        "-m",
        "weft",
        "train",
        recipe,
        "--run",
        tmp_path / "run",
        "training.compile=true",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    said = refused(Answer(done.returncode, done.stdout, done.stderr))
    assert "torch cannot compile here" in said and "training.compile: false" in said


def test_the_time_that_torch_compiled_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.train.ready.check_compiler", lambda device: None)
    monkeypatch.setattr("weft.train.training_state.seconds_spent", lambda: 34.25)
    note = Notes()
    train(Task(), tmp_path, settings(compile=True), quiet(tmp_path, note))
    said = [text for text in note.texts if "torch compiled" in text]
    assert said == ["training.compile: torch compiled for 34.2 s in update 1"]


@COMPILER
@pytest.mark.slow
def test_a_recurrent_model_is_left_as_it_is_and_that_is_said(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    answer = weft(
        "train", recipe, "--run", tmp_path / "run", "training.compile=true", "training.max_updates=2", code=0
    )
    assert "this model has no Transformer block, so nothing is compiled" in answer.err


@COMPILER
@pytest.mark.slow
def test_stopped_and_gone_on_with_it_ends_where_the_unbroken_training_does(tmp_path: Path) -> None:
    """In float32 with dropout; the second part begins anew, in its own process, with other shapes first."""
    asked = {"model": "transformer", "double": False, "dropout": 0.3, "compile": True, "save_every": 1}
    whole = trained(tmp_path / "whole", 1, max_updates=12, **asked)
    for updates in (5, 12):
        parts = trained(tmp_path / "parts", 1, max_updates=updates, **asked)
    assert furthest(whole, parts) == 0
