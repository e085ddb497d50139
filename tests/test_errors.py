"""Errors that a user can correct: their fields, and what is said where a library of an extra is missing."""

import copy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.commands import labelled
from tests.source import ROOT
from weft.data import lines
from weft.data.conllu import read_sentences
from weft.data.files import file_bytes
from weft.data.lines import read_lines
from weft.data.report import Finding, placed
from weft.data.series import read_series
from weft.errors import EXTRAS, ConfigError, DataError, MissingSplitError, saying_what_to_install
from weft.tasks.classify.data import LabelData
from weft.tasks.images.data import ClassData
from weft.tasks.pictures.data import CaptionData
from weft.tasks.running_text.base import ProseData
from weft.tasks.seq2seq.sections import PairData
from weft.tasks.speech.data import SpeechData
from weft.tasks.tag.data import TagData
from weft.train.reporting import Reporter
from weft.train.trackers import Tensorboard


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "expected 2, got 1"),
        ({"path": Path("a.tsv")}, "a.tsv: expected 2, got 1"),
        ({"path": "a.tsv", "line": 7}, "a.tsv:7: expected 2, got 1"),
    ],
    ids=["nowhere", "file", "line"],
)
def test_a_data_error_keeps_its_place_as_fields(place: dict[str, object], text: str) -> None:
    error = DataError("expected 2, got 1", **place)  # type: ignore[arg-type]
    for one in (error, copy.copy(error)):
        assert str(one) == text
        assert one.why == "expected 2, got 1"
        assert (one.path, one.line) == ("a.tsv" if place else None, place.get("line"))


def test_an_error_moves_to_another_place() -> None:
    assert str(DataError("wrong", path="a", line=2).at("b", 9)) == "b:9: wrong"
    assert DataError("wrong", path="a", line=2).at("b").line is None


@pytest.mark.parametrize(
    "data",
    [
        CaptionData(train="a", valid="b"),
        ClassData(train="a", valid="b"),
        LabelData(train="a", valid="b"),
        PairData(source="en", target="es", train="a", valid="b"),
        ProseData(train="a", valid="b"),
        SpeechData(),
        TagData(train="a", valid="b"),
    ],
    ids=lambda data: type(data).__name__,
)
def test_no_test_part_is_one_error_of_every_task(data: Any) -> None:
    with pytest.raises(
        MissingSplitError, match=r"^data\.test: .*, or score the validation part: --split valid$"
    ) as found:
        data.find("test")
    copied = copy.copy(found.value)
    assert str(copied) == f"{copied.lack}, or score the validation part: --split valid"


def test_the_fields_cannot_steer_a_terminal_either() -> None:
    assert "\x1b" not in DataError("an \x1b escape", path="a").why


def test_readers_raise_errors_with_file_and_line(tmp_path: Path) -> None:
    damaged, ragged = tmp_path / "a.txt", tmp_path / "b.txt"
    damaged.write_bytes(b"fine\n\xff\n")
    ragged.write_text("word\ttag\nword\n", "utf-8")
    for path, read in (
        (damaged, lambda: list(read_lines(damaged))),
        (ragged, lambda: list(read_sentences(ragged))),
    ):
        with pytest.raises(DataError) as refused:
            read()
        assert (refused.value.path, refused.value.line) == (str(path), 2)
        finding = placed(str(path), refused.value, "bytes")
        assert finding == Finding(str(path), 2, "bytes", refused.value.why)
        assert str(finding) == str(refused.value) == str(finding.error())


@pytest.mark.parametrize(
    ("package", "extra", "name", "content"),
    [
        ("pandas", "pandas", "sales.csv", b"ds,y\n2024-01-01,1\n2024-01-02,2\n"),
        ("zstandard", "zstd", "text.txt.zst", b"\x28\xb5\x2f\xfd\x00\x00"),
    ],
    ids=["pandas", "zstandard"],
)
def test_a_missing_library_is_told_by_the_file_that_needs_it(
    package: str, extra: str, name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        read_series(path) if package == "pandas" else next(file_bytes(path))
    assert str(error.value) == f"{path}: {package} is not installed; pip install 'weft-seq[{extra}]'"


def test_without_tensorboardx_a_training_warns_once_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    told: list[str] = []
    screen = Reporter()
    monkeypatch.setattr(screen, "warned", told.append)
    report = Tensorboard().report(tmp_path, {}, screen)
    report.started(0, False)
    report.monitored(1, {"a": 1.0})
    report.close()
    assert len(told) == 1 and "pip install 'weft-seq[tensorboard]'" in told[0]


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
