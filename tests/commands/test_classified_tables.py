"""weft predict of a classifier: tables keep their rows and columns."""

import os
import re
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from tests.shared import run_fixture

run = run_fixture("classify")


def test_a_table_without_rows_keeps_its_header(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("text,predicted\n")
    assert weft("predict", run, tmp_path / "new.csv").lines == ["text,predicted,predicted_"]


def test_a_row_without_a_text_keeps_its_cells_and_is_named(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,text\n7,\n8,it was dull\n")
    answer = weft("predict", run, tmp_path / "new.csv")
    assert answer.code == 3 and "new.csv:2: the text is empty" in answer.err
    assert answer.lines == ["id,text,predicted", "7,,", "8,it was dull,bad"]
    (tmp_path / "new.tsv").write_text("bad\tit was dull\ngood\t\n")
    answer = weft("predict", run, tmp_path / "new.tsv")
    assert answer.code == 3 and "new.tsv:2: the text is empty" in answer.err
    assert answer.lines == ["bad", ""]


def test_what_a_command_reads_or_writes_it_does_not_replace(run: Path, tmp_path: Path) -> None:
    table, twice = tmp_path / "new.csv", tmp_path / "out"
    table.write_text("text,label\nit was dull,bad\n")
    before = table.read_bytes()
    for command in (
        ("predict", run, table, "--output", tmp_path / "." / "new.csv"),
        ("evaluate", run, "--data", table, "--output", table),
        ("evaluate", run, "--data", table, "--output", twice, "--json", twice),
    ):
        assert "choose another name" in refused(weft(*command))
    assert table.read_bytes() == before and not twice.exists()
    assert weft("evaluate", run, "--data", table, "--output", "/dev/null", "--json", "/dev/null").code == 0


def test_a_pipe_is_written_to_and_not_replaced_by_a_file(run: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "new.csv").write_text("id,text\n8,it was dull\n")
    assert weft("predict", run, tmp_path / "new.csv", "--output", pipe).code == 0
    assert os.read(reader, 99).split() == [b"id,text,predicted", b"8,it", b"was", b"dull,bad"]
    assert pipe.is_fifo()
    os.close(reader)


def test_a_table_keeps_its_mark_line_ends_and_decimal_commas(run: Path, tmp_path: Path) -> None:
    """As Excel writes it in Europe; a line end in a cell stays as it is."""
    content = '\ufefftext;amount;note\r\nit was dull;60,94;"a\nb"\r\n;7,5;\r\n'.encode()
    (tmp_path / "new.csv").write_bytes(content)
    filed = weft("predict", run, tmp_path / "new.csv", "--scores")
    head, row, empty = filed.out.removesuffix("\r\n").split("\r\n")
    assert head.startswith("\ufefftext;amount;note;predicted;predicted=")
    assert re.fullmatch(r'it was dull;60,94;"a\nb";bad;[01],\d{4};[01],\d{4}', row)
    assert empty == ";7,5;;;;"
    weft("predict", run, tmp_path / "new.csv", "--scores", "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == filed.out.encode()
    assert weft("predict", run, "--scores", stdin=content).out == filed.out


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", 'id,text\n7,"it was\n"\n8,\n', ["id,text,predicted", "7,", '",', "8,,"]),
        ("a.tsv", "\ufeffText\tlabel\nit was dull\tbad\n", ["\ufeffText\tlabel", "it was dull\tbad\tbad"]),
        ("a.csv", "text\nit was dull\n", ["text,predicted", "it was dull,bad"]),
        ("a.jsonl", '{"text": "it was dull"}\n', ["text,predicted", "it was dull,bad"]),
        ("a.json", '[\n  {"text": "it was dull"}]\n', ["text,predicted", "it was dull,bad"]),
        ("a.csv", "id,text\n7,it was dull\n,\n,\n", ["id,text,predicted", "7,it was dull,bad", ",,", ",,"]),
    ],
)
def test_a_table_on_standard_input_is_read_as_its_file(
    run: Path, name: str, content: str, lines: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    filed, piped = weft("predict", run, tmp_path / name), weft("predict", run, stdin=content.encode())
    assert (piped.code, piped.out) == (filed.code, filed.out)
    assert [line[: len(wanted)] for line, wanted in zip(piped.out.splitlines(), lines, strict=False)] == lines
    assert f"standard input: read as a .{name[2:]} table" in piped.err
    assert filed.err.replace(str(tmp_path / name), "standard input") in piped.err
    assert weft("predict", run, "-", stdin=content.encode()).out == piped.out


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "id,label\n1,bad\n"), ("a.tsv", "id\tlabel\ttxt\n1\tbad\tit was dull\n")]
)
def test_a_table_on_standard_input_without_its_columns_is_refused_as_its_file(
    run: Path, name: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    said = refused(weft("predict", run, tmp_path / name))
    assert "expected a column 'text', got " in said
    piped = weft("predict", run, stdin=content.encode())
    assert (piped.code, piped.out) == (2, "")
    assert piped.err.splitlines()[-1] == said.replace(str(tmp_path / name), "standard input")


def test_texts_on_standard_input_are_no_table(run: Path) -> None:
    for text in (b"text\nid, text and more\n", b"a text, or more\n"):
        assert weft("predict", run, stdin=text).out.count("\n") == text.count(b"\n")
    assert "got an Excel workbook" in refused(weft("predict", run, stdin=b"PK\x03\x04" + bytes(26) + b"xl/"))
