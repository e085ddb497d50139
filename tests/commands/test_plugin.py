"""A part of the user's own, in a package of the working directory, works like one of Weft's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft as package
from tests import plugins
from tests.commands.shell import refused, weft
from tests.test_contributing import FILES

CHANGES = (
    "model.decoder.score.use=my_parts_of_weft.doubled.Doubled",
    "model.decoder.score.factor=1.5",
    "training.max_updates=2",
)
PLUGIN = "--plugin", "my_parts_of_weft"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a package in it."""
    return plugins.package(tmp_path / "home", "my_parts_of_weft", {"doubled.py": FILES["score"]}, monkeypatch)


def test_a_run_that_names_it_does_not_load_it_unasked(toy: Path, home: Path) -> None:
    toy.write_text(toy.read_text().replace("score: additive", "score: dot"))
    assert weft("train", toy, "--run", "run", *CHANGES, *PLUGIN).code == 0
    for name in [name for name in sys.modules if name.startswith("my_parts_of_weft")]:
        del sys.modules[name]
    said = refused(weft("predict", "run", stdin=b"alpha\n"))
    assert "run/recipe.yaml:" in said and "if you trust it, allow it with --plugin my_parts_of_weft" in said
    assert not any(name.startswith("my_parts_of_weft") for name in sys.modules)


@pytest.mark.slow
def test_the_installed_command_finds_it_too(toy: Path, home: Path) -> None:
    # A console script does not have the working directory on its path, as python -m has.
    code = "import sys; sys.path.remove(''); from weft.cli import main; main()"
    where = {"PYTHONPATH": str(Path(package.__file__).parents[1]), "WEFT_CACHE": os.environ["WEFT_CACHE"]}
    toy.write_text(toy.read_text().replace("score: additive", "score: dot"))
    words = [sys.executable, "-c", code, "train", str(toy), "--run", "run", *CHANGES, *PLUGIN]
    done = subprocess.run(words, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (home / "run" / "model.safetensors").exists()
