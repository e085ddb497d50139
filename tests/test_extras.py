"""What works without the libraries of the extras, and what is said where one is missing."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.commands import labelled
from weft.cli import EXTRAS, _sentence

ROOT = Path(__file__).parent.parent
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"matplotlib", "PIL", "soundfile", "sentencepiece", "google"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
from weft.cli import main
main(sys.argv[1:])
"""
"""`weft` in an environment without pictures, sound and pieces."""


def blocked(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKED, *map(str, words)], capture_output=True, text=True)


@pytest.mark.slow
def test_texts_are_trained_and_answered_without_pictures_sound_and_pieces(tmp_path: Path) -> None:
    recipe, run = labelled.make_texts(tmp_path / "toy"), tmp_path / "run"
    for words in (
        ("train", recipe, "--run", run, "training.max_updates=2"),
        ("evaluate", run, "--split", "valid"),
        ("predict", run, tmp_path / "toy" / "valid.txt"),
        ("show", run),
    ):
        found = blocked(*words)
        assert found.returncode == 0, found.stderr
    refused = blocked("inspect", run)
    assert refused.returncode == 2 and "pip install 'weft-seq[pictures]'" in refused.stderr


@pytest.mark.parametrize(
    "module", ["matplotlib", "PIL.Image", "soundfile", "sentencepiece", "google.protobuf"]
)
def test_a_missing_library_names_its_extra(module: str) -> None:
    extra = next(name for name, modules in EXTRAS.items() if module.partition(".")[0] in modules.split())
    said = _sentence(ModuleNotFoundError(f"No module named {module!r}", name=module), ())
    assert said.endswith(f"pip install 'weft-seq[{extra}]'")


def test_the_extras_that_sentences_name_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS) <= set(project["optional-dependencies"])
