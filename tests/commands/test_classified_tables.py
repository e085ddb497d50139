"""Classifiers of tables and of sets as they are published: rows and columns stay, any order and encoding."""

import os
import random
import re
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.data.labelled import LabelledText
from weft.errors import ConfigError
from weft.tasks.labels.splits import ENOUGH, held_out, small_validation
from weft.tasks.vocabulary import WordSettings

TASK = "classify"


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


SMALL = ("training.max_updates=2", "training.validate_every=2", "training.tensorboard=false")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """As TREC's files are: NUM:dist far lake ?"""
    chance, kinds = random.Random(1), [("NUM:dist", "far"), ("NUM:count", "many"), ("HUM:ind", "do n't who")]
    for name, count in (("train", 97), ("test", 23)):
        rows = []
        for _ in range(count):
            (kind, verb), place = chance.choice(kinds), chance.choice(["café", "U.S.", "lake"])
            rows.append(f"{kind} {verb} {place} ?")
        (tmp_path / f"{name}.label").write_bytes("".join(f"{row}\n" for row in rows).encode("latin-1"))
    return tmp_path


def test_latin_1_and_a_class_in_front_are_named_and_read_by_an_option(questions: Path) -> None:
    train = questions / "train.label"
    coarse = ("--train", train, "--labels", "coarse")
    assert "latin-1" in refused(weft("init", "classify", *coarse, "-o", questions / "x.yaml"))
    lines = ("--train", train, "--encoding", "latin-1")
    assert "--labels" in refused(weft("init", "classify", *lines, "-o", questions / "x.yaml"))
    given = (*lines, "--labels", "coarse", "-o", questions / "mine.yaml")
    weft("init", "classify", *given, code=0)
    written = (questions / "mine.yaml").read_text("utf-8")
    assert "labels: coarse" in written and "encoding: latin-1" in written and "2 classes" in written
    changes = (f"data.folder={questions}", "data.vocabulary.kind=space", *SMALL)
    weft("train", questions / "mine.yaml", "--run", questions / "run", *changes, code=0)
    scored = weft("evaluate", questions / "run", "--full")
    assert scored.code == 0 and "HUM" in scored.out and "(space)" in scored.out, scored.err


def test_the_forms_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 a dull film\n1 do n't miss it\n" * 5)
    found = [(one.label, one.text) for one in LabelledText(tmp_path / "a.txt", labels="first")]
    assert found == [("0", "a dull film"), ("1", "do n't miss it")] * 5
    (tmp_path / "b.txt").write_text("NUM:dist How far ?\nalone\n")
    rows = list(LabelledText(tmp_path / "b.txt", labels="coarse").rows())
    assert rows[0].label == "NUM" and rows[1].kind == "unlabelled"  # type: ignore[union-attr]
    checked = weft("data", "check", tmp_path / "a.txt", "--task", "classify", "--labels", "first")
    assert checked.code == 0, checked.out
    with pytest.raises(ConfigError, match="encoding"):
        LabelledText(tmp_path / "a.txt", encoding="utf-16")


def test_words_between_spaces_stay_whole() -> None:
    vocabulary = WordSettings(kind="space").learn(["do n't go to the U.S. ?"])
    assert vocabulary.surface_pieces("n't U.S.") == ["n't", "u.s."]
    cut = WordSettings(kind="word").learn(["do n't go to the U.S. ?"])
    assert len(cut.encode("n't U.S.")) == 7


def test_a_validation_part_that_is_too_small_is_told(questions: Path) -> None:
    said = small_validation(173, 6747, cut=True)
    assert said and "±7.5 points" in said and "data.hold_out: 6 would keep 1,153" in said
    assert small_validation(ENOUGH, 10_000, cut=True) is None
    assert "hold_out" not in str(small_validation(173, 6747, cut=False))
    # the worst case is one half right: 1.96 sqrt(0.25 / n) is three points
    assert 1.96 * (0.25 / ENOUGH) ** 0.5 <= 0.03 < 1.96 * (0.25 / (ENOUGH - 1)) ** 0.5
    assert [held_out(n) for n in (900, 6920, 50_000)] == [5, 6, 10]
