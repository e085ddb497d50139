"""Labelled texts as other programs write them: the class is what their writer meant."""

import csv
import json
from collections import Counter
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from tests.commands.shell import refused, weft
from weft import load
from weft.data.guess import columns_of, has_header, holds_pairs, holds_texts, texts_of
from weft.data.labelled import NO_BORDER, LabelledExample, LabelledText
from weft.errors import DataError
from weft.tasks import TextClassifier
from weft.tasks.classify.data import LabelData, check_labels, columns
from weft.tasks.classify.reader import LabelReader
from weft.tasks.predictor import Place

KINDS = ("bill", "tech", "ship")
ROWS = [(KINDS[n % 3], f'ticket "{n}", my {KINDS[n % 3]}', f"body of it {n}") for n in range(60)]


def said(path: Path, **form: object) -> list[tuple[str, str]]:
    return [(one.label, one.text) for one in LabelledText(path, **form)]  # type: ignore[arg-type]


def table(path: Path, rows: list[tuple[str, ...]], **how: object) -> Path:
    with open(path, "w", newline="") as file:
        csv.writer(file, **how).writerows(rows)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("gap", [" ", "\t", "\u00a0", "  ", " \t ", "\u3000", ", ", ",\t"])
@pytest.mark.parametrize(("begin", "end"), [("", "\n"), ("\ufeff", "\r\n"), ("", "\r")])
def test_white_space_of_any_kind_ends_a_label(tmp_path: Path, gap: str, begin: str, end: str) -> None:
    path = tmp_path / "x.txt"
    lines = [f"__label__{kind}{gap}{text}" for kind, text, _ in ROWS]
    path.write_text(begin + end.join(lines) + end, encoding="utf-8", newline="")
    assert said(path) == [row[:2] for row in ROWS]
    report = check_labels([path])
    assert report.counts == {} and report.lines == {str(path): 60}
    assert holds_texts(path)
    path.write_text(path.read_text().replace("__label__", ""), newline="")
    assert [label.rstrip(",") for label, _ in said(path, labels="first")] == [row[0] for row in ROWS]


@pytest.mark.parametrize(
    "line", ["__label__a __label__b x", "__label__a,__label__b x", "__label__a, __label__b\tx"]
)
def test_several_labels_need_a_separator(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"{line}\n")
    with pytest.raises(
        DataError, match=r"x\.txt:1: expected one label, got two or more \(a, b\).*--separator"
    ):
        said(path)
    assert said(path, separator="|") == [("a|b", "x")]


@pytest.mark.parametrize(
    "line", ["__label__a one text", "one text __label__a", "one __label__a text", "one text\t__label__a,"]
)
def test_a_label_may_stand_anywhere(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"{line}\n__label__b not__label__c , __label__\n")
    assert said(path) == [("a", "one text"), ("b", "not__label__c , __label__")] and holds_texts(path)


def test_classes_that_differ_in_letter_case_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    names = ["Bill", "bill", "bill ", "BILL.", "caf\u00e9", "cafe\u0301", "c", "c++"]
    table(path, [("label", "text"), *((name, f"{name} {n}") for name in names for n in range(3))])
    found = [str(one.text) for one in check_labels([path]).findings if one.kind == "alike"]
    assert sorted(found) == [
        "the classes 'bill' (6) and 'BILL.' (3) may be one; call it by one name",
        "the classes 'bill' (6) and 'Bill' (3) may be one; call it by one name",
        "the classes 'caf\u00e9' (3) and 'cafe\u0301' (3) may be one; call it by one name",
    ]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_quoted_tables_keep_their_columns(tmp_path: Path, quoting: int) -> None:
    path = tmp_path / "x.tsv"
    table(path, [("label", "text"), *(row[:2] for row in ROWS)], delimiter="\t", quoting=quoting)
    assert said(path) == [row[:2] for row in ROWS]
    checked = weft("data", "check", path)
    assert checked.code == 0 and "quotes enclose its cells" in checked.out
    began = weft("init", "classify", path, "-o", tmp_path / "x.yaml")
    assert began.code == 0 and "# 3 classes, 60 training texts" in began.out


def test_the_first_row_is_a_text_unless_it_names_the_columns(tmp_path: Path) -> None:
    rows = [(kind, body) for kind, _, body in ROWS]
    for name, how in (
        ("x.tsv", {"delimiter": "\t"}),
        ("y.tsv", {"delimiter": "\t", "quoting": csv.QUOTE_ALL}),
    ):
        path = table(tmp_path / name, rows, **how)
        assert said(path) == rows
        text, label, note = columns(path, None, None)
        assert (text, label) == ("text", "label") and "no header" in note
        began = weft("init", "classify", path, "-o", path.with_suffix(".yaml"))
        assert began.code == 0 and "# 3 classes, 60 training texts" in began.out
        assert f"{path}: 60 texts" in weft("data", "check", path).lines
    turned = table(tmp_path / "turned.csv", [row[::-1] for row in rows])
    text, label, note = columns(turned, None, None)
    assert (text, label) == ("1", "2") and "'1' is read as the text and '2' as its class" in note
    assert said(turned, text="1", label="2") == rows
    named = table(tmp_path / "named.csv", [("queue", "body"), *rows])
    assert columns(named, None, None)[:2] == ("body", "queue")
    assert not has_header(["bill", "x"], [["bill", "y"], ["bill", "z"]])
    assert texts_of(columns_of(named)) == (["body"], "queue") and holds_texts(named)


def test_a_table_of_pairs_is_not_one_of_classes(tmp_path: Path) -> None:
    rows = [("id", "English", "German", "state"), *((f"{n}", f"a b {n}", f"c d {n}", "ok") for n in range(9))]
    pairs = table(tmp_path / "pairs.csv", [*rows, ("9", "a b", "c d", "new")])
    assert holds_pairs(pairs) and not holds_texts(pairs)
    parallel = table(tmp_path / "x.tsv", [(f"a b {n}", f"c {n % 5}") for n in range(40)], delimiter="\t")
    assert not holds_texts(parallel)


def test_several_columns_are_one_text_in_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        ("subject", "id", "body", "queue"),
        *((a, str(n), b, kind) for n, (kind, a, b) in enumerate(ROWS)),
    ]
    path = table(Path("x.csv"), [*rows[:-1], ("", "59", ROWS[-1][2], ROWS[-1][0])], delimiter=";")
    read = said(path, text=["subject", "body"], label="queue")
    assert read == [(kind, f"{a} ␞ {b}") for kind, a, b in ROWS[:-1]] + [("ship", f" ␞ {ROWS[-1][2]}")]
    named = ("--text", "subject", "--text", "body")
    checked = weft("data", "check", path, *named, "--label", "queue").lines
    assert f"{path}: 60 texts" in checked and "columns 'subject' and 'body' are read" in "".join(checked)
    began = weft("init", "classify", path, *named, code=0)
    assert (
        "columns 'subject' and 'body' are read as the text, joined, and 'queue' as its class"
        in began.lines[0]
    )
    assert "text: [subject, body]" in began.out and "--text subject --text body --label queue" in began.out
    weft("train", "classify.yaml", "--run", "run", "training.max_updates=2", code=0)
    assert weft("evaluate", "run", "--data", path).code == 0
    answer = weft("predict", "run", path)
    rows = [line.removesuffix("\r") for line in answer.lines]
    assert rows[0] == "subject;id;body;queue;predicted" and len(rows) == 61
    Path("in.txt").write_text("".join(f"{text}\n" for _, text in read))
    plain = weft("predict", "run", "in.txt").lines
    assert [line.rpartition(";")[2] for line in rows[1:]] == plain
    model, df = load("run", TextClassifier), pd.read_csv(path, sep=";")
    assert "▁␞" in model.reader.vocabulary.pieces(range(len(model.reader.vocabulary)))
    assert list(model.predict(df)) == plain and [model.predict(df.iloc[n]) for n in (0, 59)] == [
        plain[0],
        plain[59],
    ]
    for given, why in (
        ({"subject": "a"}, "expected the column 'body'"),
        ({"subject": "", "body": None}, "empty"),
    ):
        with pytest.raises(DataError, match=why):
            model.predict(given)
    saved = json.loads(Path("run/tokenizer.classes.json").read_text("utf-8"))
    del saved["border"]  # as in runs of before
    Path("run/tokenizer.classes.json").write_text(json.dumps(saved), "utf-8")
    model.reader.border = LabelReader.load(Path("run"), bag=None, max_length=9).border
    assert model.parse({"subject": "a", "body": "b"}, Place("x")).text == "a b"
    old = LabelData(train=str(path), hold_out=9, text=["subject", "body"], label="queue").bordered(NO_BORDER)
    assert list(old.read(path))[-1].text == ROWS[-1][2]
    assert "--label: expected one value, got 2" in refused(
        weft("init", "classify", path, *["--label", "id"] * 2)
    )


def test_numbers_and_words_of_a_workbook_are_classes_as_they_are_shown(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in [
        ["text", "label", "text"],
        ["one", 1, "x"],
        ["two", 1.0, "x"],
        ["null", "NA", "x"],
        ["", True, ""],
    ]:
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(DataError, match=r"x\.xlsx:1: the columns 1 and 3 are both called 'text'; rename one"):
        LabelledText(tmp_path / "x.xlsx")
    book.active["C1"] = "more"
    book.save(tmp_path / "x.xlsx")
    assert said(tmp_path / "x.xlsx") == [("1", "one"), ("1", "two"), ("NA", "null"), ("TRUE", "")]
    assert Counter(one.row[2] for one in LabelledText(tmp_path / "x.xlsx")) == {"x": 3, "": 1}


def test_columns_of_one_name_stay_apart_where_they_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,text,a,label,\n1,x y,2,b,\n")
    (one,) = LabelledText(tmp_path / "x.csv")
    assert one.row == ["1", "x y", "2", "b", ""] and (one.label, one.text) == ("b", "x y")


def test_a_list_of_labels_in_a_record_is_several_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "one", "label": ["a"]}\n{"text": "two", "label": ["a", "b"]}\n')
    assert [one.label for one in LabelledText(path, separator="|")] == ["a", "a|b"]
    first, second = LabelledText(path).rows()
    assert isinstance(first, LabelledExample) and first.label == "a"
    assert "x.jsonl:2: expected one label, got two or more (a, b); keep one, or pass a separator" in str(
        second
    )


def test_a_label_in_brackets_is_a_name_unless_it_is_a_list(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "one", "label": "[neg]"}\n{"text": "two", "label": "[1"}\n')
    assert [one.label for one in LabelledText(path)] == ["[neg]", "[1"]
