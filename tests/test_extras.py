"""What works without the libraries of the extras, and what is said where one is missing."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.commands import labelled
from weft.cli import _sentence
from weft.data import lines
from weft.errors import EXTRAS, ConfigError, saying_what_to_install

ROOT = Path(__file__).parent.parent
HIDDEN = """
import sys
from importlib.machinery import PathFinder
hidden = set(sys.argv.pop(1).split())
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)
sys.meta_path = [Finder if one is PathFinder else one for one in sys.meta_path]
from weft.cli import main
main(sys.argv[1:])
"""
"""`weft` in an environment without the libraries of extras."""


def without_extras(*words: object) -> subprocess.CompletedProcess[str]:
    modules = " ".join(EXTRAS.values())
    return subprocess.run(
        [sys.executable, "-c", HIDDEN, modules, *map(str, words)], capture_output=True, text=True
    )


@pytest.mark.slow
def test_texts_are_trained_and_answered_without_any_extra(tmp_path: Path) -> None:
    recipe, run = labelled.make_texts(tmp_path / "toy"), tmp_path / "run"
    table = tmp_path / "films 2024.csv"
    table.write_text("text,label\n" + "".join(f"film {n},{'ab'[n % 2]}\n" for n in range(40)))
    for words in (
        ("init", "classify", table, "--output", tmp_path / "my.yaml", "--no-trial"),
        ("train", recipe, "--run", run, "training.max_updates=2"),
        ("evaluate", run, "--split", "valid"),
        ("predict", run, tmp_path / "toy" / "valid.tsv"),
        ("show", run),
    ):
        found = without_extras(*words)
        assert found.returncode == 0, found.stderr
    refused = without_extras("inspect", run)
    assert refused.returncode == 2 and "pip install 'weft-seq[pictures]'" in refused.stderr


@pytest.mark.parametrize(
    "module", ["matplotlib", "PIL.Image", "soundfile", "sentencepiece", "google.protobuf"]
)
def test_a_missing_library_names_its_extra(module: str) -> None:
    extra = next(name for name, modules in EXTRAS.items() if module.partition(".")[0] in modules.split())
    said = _sentence(ModuleNotFoundError(f"No module named {module!r}", name=module), ())
    assert said.endswith(f"pip install 'weft-seq[{extra}]'")


def test_a_missing_library_is_a_sentence_in_python_too() -> None:
    with pytest.raises(ConfigError, match=r"needs PIL; .*'weft-seq\[pictures\]'"), saying_what_to_install():
        raise ModuleNotFoundError("No module named 'PIL.Image'", name="PIL.Image")
    with pytest.raises(ModuleNotFoundError, match="mine"), saying_what_to_install():
        raise ModuleNotFoundError("No module named 'mine'", name="mine")


def test_the_encoding_of_a_file_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "añadió más café; añadió más café; añadió más café".encode("cp1252")
    assert "WINDOWS-1252" in lines.advice("x.txt", line)
    monkeypatch.setattr(lines, "find_spec", lambda name: None)
    said = lines.advice("x.txt", line)
    assert "iconv -f ENCODING" in said and "pip install 'weft-seq[encodings]'" in said


def test_the_extras_that_sentences_name_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS) <= set(project["optional-dependencies"])
