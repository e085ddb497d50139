"""Errors that a user can correct: their fields besides the text."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.data.conllu import read_sentences
from weft.data.files import file_bytes
from weft.data.lines import read_lines
from weft.data.report import Finding, placed
from weft.data.series import read_series
from weft.errors import ConfigError, DataError, MissingSplitError
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
