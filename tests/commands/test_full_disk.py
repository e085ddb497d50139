"""No space left, wherever it shows: code 2, one sentence, what was there before stays."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.shell import content, refused, weft
from tests.shared import shared_run


@contextmanager
def full(part: str, spared: int = 0) -> Iterator[None]:
    """A disk that has no room for files whose path holds `part`, but for the first few."""
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


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="file names by handle need /proc")


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
