"""Errors that a user can correct: their fields besides the text."""

import copy
from pathlib import Path

import pytest

from weft.data.conllu import read_sentences
from weft.data.lines import read_lines
from weft.data.report import Finding, placed
from weft.errors import DataError


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
