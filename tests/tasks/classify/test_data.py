"""weft data check on labelled texts reads on where a training would stop, and counts every line."""

from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.data.labelled import LabelledText
from weft.errors import DataError
from weft.tasks.classify.data import check_labels

BAD = (
    b"text,label",
    b"fine,positive",
    b"bad,negative,extra",
    b",positive",
    b"also bad,negative,extra",
    b"x,",
    b'"a "b" c",negative',
    b"caf\xe9,negative",
    b"good,negative",
)
WANT = [
    "3: expected 2 columns, got 3; correct or remove the line",
    "4: the text is empty; remove the line",
    "5: expected 2 columns, got 3; correct or remove the line",
    "6: the label is empty; give one or remove the line",
    "8: not UTF-8 (byte 0xe9 at position 4 of the line); convert the file",
]


@pytest.mark.parametrize(("ending", "cell"), [("csv", b","), ("tsv", b"\t")])
def test_every_line_of_a_table_is_looked_at(tmp_path: Path, ending: str, cell: bytes) -> None:
    file = tmp_path / f"train.{ending}"
    file.write_bytes(b"".join(line.replace(b",", cell) + b"\n" for line in BAD))
    report = check_labels([file])
    shown = [
        str(one).removeprefix(f"{file}:").partition(", probably")[0] for one in report.findings if one.line
    ]
    twice = 'write a quote inside a quoted cell twice (not \\"), or correct the line'
    quotes = [f"7: ',' expected after '\"'; {twice}"] if ending == "csv" else []
    assert sorted(shown) == sorted([*WANT, *quotes])
    counts = {"columns": 2 + len(quotes), "nothing": 1, "unlabelled": 1, "bytes": 1}
    counts["single"] = 1  # two texts are good: none can be held out
    assert {kind: count for kind, count in report.counts.items() if kind != "label"} == counts
    assert report.lines == {str(file): 8}  # below the first line
    assert report.verdict.startswith("not ready")


def test_training_is_told_of_the_first_bad_line(tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    file.write_bytes(b"".join(line + b"\n" for line in BAD))
    texts = iter(LabelledText(file))
    assert next(texts).text == "fine"
    with pytest.raises(DataError, match=r"train\.csv:3: .*got 3"):
        next(texts)


def test_a_row_of_several_lines_is_named_by_its_first(tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    file.write_text('text,label\n"two\nlines",a\n"three\nmore\nlines",a,b\nlast,b\n')
    (wrong,) = [one for one in check_labels([file]).findings if one.kind == "columns"]
    assert wrong.line == 4
    file.write_text(file.read_text().replace(",a,b", ",b"))
    assert [one.number for one in LabelledText(file)] == [2, 4, 7]


def test_a_file_that_is_not_there_is_no_wrong_column(tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("text,label\nfine,a\ngood,a\nbad,b\n")
    report = check_labels([tmp_path / "train.csv", tmp_path / "dev.csv"])
    assert report.counts == {"file": 1}  # and no label of dev.csv is blamed
    assert report.lines == {str(tmp_path / "dev.csv"): 3}


def test_a_byte_that_opens_a_quote_for_good_is_named_before_the_quote(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(b'label,text\nx,"one\ntw\xffo"\ny,three\n')
    with pytest.raises(DataError, match=r"x\.csv:3: .*UTF-8"):
        list(LabelledText(file))


def test_columns_of_other_names_are_named(tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    table.write_text("review,stars\n" + "fine,good\nawful,bad\n" * 3)
    answer = weft("data", "check", table, "--text", "review", "--label", "stars")
    assert answer.code == 0 and "6 texts" in answer.out and answer.out.count("the same text as") == 4
    guessed = weft("data", "check", table, "--text", "review")
    assert guessed.code == 0 and "column 'review' is read as the text and 'stars' as its class" in guessed.out
    missing = weft("data", "check", table, "--text", "review", "--label", "label")
    assert "r.csv:1: expected a column 'label'" in missing.out and "with --text and --label" in missing.out
    said = refused(weft("data", "check", table, "--label", "stars", "--task", "language"))
    assert "--label:" in said and "got files for language" in said
    recipe = tmp_path / "r.yaml"
    begun = weft("init", "classify", "--train", table, "--text", "review", "--label", "stars", "-o", recipe)
    assert f"data check {table} --task classify --text review --label stars" in begun.out
