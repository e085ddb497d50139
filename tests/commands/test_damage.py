"""Runs that are damaged, of another version or none, and full disks: a sentence whose remedy works."""

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import content, refused, untouched, weft
from tests.shared import shared_run
from weft.tasks.evaluation import Validation
from weft.tasks.seq2seq.base import PairTraining

Harm = Callable[[Path], None]
CHANGES = "training.max_updates=4", "training.validate_every=2"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints, and its recipe, toy/toy.yaml beside it."""
    folder = tmp_path_factory.mktemp("whole")
    corpus.make(folder / "toy")
    assert train(folder / "run") == 0
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    (tmp_path / "toy").mkdir()
    shutil.copy(whole.parent / "toy" / "toy.yaml", tmp_path / "toy")
    return Path(shutil.copytree(whole, tmp_path / "run"))


def train(run: Path) -> int:
    return weft("train", run.parent / "toy" / "toy.yaml", "--run", run, *CHANGES).code


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def pickled(path: Path) -> None:
    path.write_bytes(b"\x80\x04cos\nsystem\n(S'false'\ntR.")


@pytest.mark.parametrize("command", ["predict", "evaluate", "show"])
def test_what_is_no_run_is_refused(tmp_path: Path, command: str) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        said = untouched(tmp_path, lambda place=place: weft(command, place))
        assert said.startswith(f"weft: {place}: not a run directory") and "weft train RECIPE" in said


@pytest.mark.parametrize("command", ["predict", "evaluate", "show"])
def test_a_run_without_a_model_yet_is_refused(run: Path, command: str) -> None:
    (run / "model.safetensors").unlink()
    said = untouched(run, lambda: weft(command, run))
    assert said == f"weft: {run}: has no model.safetensors yet; let `weft train` reach a first validation"


@pytest.mark.parametrize("harm", [flip, cut, empty, pickled])
def test_a_damaged_model_is_made_again_from_the_checkpoints(run: Path, harm: Harm) -> None:
    whole = (run / "model.safetensors").read_bytes()
    harm(run / "model.safetensors")
    said = untouched(run, lambda: weft("predict", run, stdin=b"alpha\n"))
    assert re.search(r"model\.safetensors: is damaged \(.*\); delete it and run `weft train` again$", said)
    (run / "model.safetensors").unlink()
    assert train(run) == 0
    assert (run / "model.safetensors").read_bytes() == whole


def test_a_damaged_mean_is_made_again_too(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([3.0, 2.0, 2.5, 1.0, 1.0])  # three checkpoints, then their mean, twice
    monkeypatch.setattr(PairTraining, "validate", lambda self, model: Validation({"loss": next(losses)}, []))
    run = tmp_path / "mean"
    changes = "training.max_updates=6", "training.validate_every=2", "training.average=3"
    assert weft("train", toy, "--run", run, *changes).code == 0
    assert len(json.loads((run / "checkpoints.json").read_bytes())["model"]["of"]) == 3
    whole = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").unlink()
    assert weft("train", toy, "--run", run, *changes).code == 0
    assert (run / "model.safetensors").read_bytes() == whole


@pytest.mark.parametrize("command", ["predict", "evaluate", "show", "train"])
def test_a_run_of_another_version_is_refused(run: Path, command: str) -> None:
    about = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(json.dumps({**about, "format": 99, "weft": "9.9"}))
    options = (run.parent / "toy" / "toy.yaml", "--run", run) if command == "train" else (run,)
    said = untouched(run, lambda: weft(command, *options))
    assert re.search(
        r"written in format 99 by weft 9\.9, and weft \S+ reads format 1; use that version", said
    )


@pytest.mark.parametrize("harm", [cut, empty, pickled, Path.unlink])
@pytest.mark.parametrize("name", ["run.json", "recipe.yaml", "tokenizer.source.json"])
def test_a_damaged_file_beside_the_model_is_named(run: Path, harm: Harm, name: str) -> None:
    if (name, harm) == ("recipe.yaml", cut):
        return  # a recipe that ends early may still be one
    harm(run / name)
    said = untouched(run, lambda: weft("predict", run, stdin=b"alpha\n"))
    assert name in said and re.search("; |, ", said)


def test_weights_of_another_model_are_refused(run: Path, trained: Path) -> None:
    recipe = run / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("- 17", "- 16").replace("[17]", "[16]"))
    said = untouched(run, lambda: weft("predict", run, stdin=b"alpha\n"))
    assert re.search(r"model\.safetensors: contains a different model from the recipe \(.*; use the", said)


@contextmanager
def full(part: str, spared: int = 0) -> Iterator[None]:
    """A disk that has no room for files whose path holds `part`, but for the first few."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("file names by handle need /proc")
    real, seen = os.fsync, []

    def fsync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        if re.search(part, path) and not os.path.isdir(path):
            seen.append(path)
            if len(seen) > spared:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield
    assert len(seen) > spared


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("run/.writing-run.json", "No space left on device); choose another directory with --run"),
        ("run/.writing-recipe.yaml", "No space left on device); choose another directory with --run"),
        ("run/.*tokenizer", "No space left on device"),
        ("stores/", "cannot be written (No space left on device); free some space"),
        (
            "step-00000002/",
            "could not be saved (No space left on device) and no older one exists; free some space",
        ),
        ("run/.writing-model", "No space left on device) and is unchanged; free some space and run the same"),
        ("run/.writing-README", "the model is complete; free some space"),
    ],
)
def test_training_on_a_full_disk_can_be_taken_up(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, sentence: str
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    run, changes = tmp_path / "run", ("training.max_updates=4", "training.validate_every=2")
    with full(part):
        answer = weft("train", toy, "--run", run, *changes)
    assert sentence in refused(answer)
    assert weft("train", toy, "--run", run, *changes).code == 0
    assert not [name for name in content(run) if ".writing-" in name or ".part" in name]


def test_a_full_disk_keeps_the_older_checkpoint_and_the_model(toy: Path, tmp_path: Path) -> None:
    run, changes = tmp_path / "run", ("training.max_updates=6", "training.validate_every=2")
    assert weft("train", toy, "--run", run, "training.max_updates=2", *changes[1:]).code == 0
    before = content(run)
    with full("step-00000004/"):
        said = refused(weft("train", toy, "--run", run, *changes))
    assert "(No space left on device) and the checkpoint of update 2 is kept; free some space" in said
    after = content(run)
    changed = {name for name in {**before, **after} if before.get(name) != after.get(name)}
    assert changed <= {"recipe.yaml", "metrics.jsonl"}  # the longer training, and its lines
    assert weft("train", toy, "--run", run, *changes).code == 0


def test_what_is_written_for_the_user_replaces_nothing(trained: Path, tmp_path: Path) -> None:
    for name in ("out.txt", "all.json", "out.pharaoh"):
        (tmp_path / name).write_text("older\n")
    before = content(tmp_path)
    with full("out.txt"):
        answer = weft("evaluate", trained, "--output", tmp_path / "out.txt")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    sentence = "cannot be written (No space left on device); free some space or choose another place"
    assert f"weft: {tmp_path / 'out.txt'}: {sentence}\n" == answer.err
    with full("all.json"):
        assert sentence in weft("evaluate", trained, "--json", tmp_path / "all.json").err
    assert content(tmp_path) == before


def test_an_export_on_a_full_disk_names_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = shared_run("language")

    def no_room(*places: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "rename", no_room)
    said = refused(weft("export", run, "--to", "tokenizer", "--output", tmp_path / "out"))
    assert f"--output {tmp_path / 'out'}: cannot be written (No space left on device); free some" in said
    assert not list(tmp_path.iterdir())
