"""A .csv with semicolons or tabs, as many spreadsheets save it, is told from a damaged one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from weft.data.labelled import LabelledText
from weft.data.series import read_series
from weft.errors import DataError


@pytest.mark.parametrize(
    ("read", "rows"),
    [
        (read_series, ["when;a;b", "2023-01-02;1,5;1", "2023-01-03;2,5;2"]),
        (LabelledText, ["text;label", "fine, really;good"]),
    ],
    ids=["series", "labelled"],
)
@pytest.mark.parametrize("mark", [";", "\t"])
def test_other_marks_are_named(tmp_path: Path, read: Callable[..., Any], rows: list[str], mark: str) -> None:
    file = tmp_path / "x.csv"
    file.write_text("\n".join(rows).replace(";", mark) + "\n")
    shown = {";": "';'", "\t": "a tab"}[mark]
    with pytest.raises(DataError, match=f"x.csv:1: the first line has {shown} and no comma; save the"):
        read(file)


def test_a_semicolon_beside_commas_is_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("day,a;b\n2023-01-02,1.5\n")
    assert read_series(tmp_path / "x.csv").columns == ("a;b",)
    (tmp_path / "y.csv").write_text("text,label\none; two,a\n")
    assert next(iter(LabelledText(tmp_path / "y.csv"))).text == "one; two"


def test_commands_say_it_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("when;a\n2023-01-02;1,5\n")
    said = (
        f"{file}:1: the first line has ';' and no comma; save the file with commas between the cells and "
        "points in the numbers (1.5)"
    )
    begun = weft("init", "forecast", "--file", file, "--horizon", 1, "-o", tmp_path / "x.yaml")
    assert refused(begun) == f"weft: {said}"
    assert said in weft("data", "check", file).lines
