"""Tables as other programs write them have the cells that were written, whatever their format."""

import csv
import datetime
import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from weft.data import tables
from weft.data.conll import form_of, holds_tags
from weft.data.conllu import read_sentences
from weft.data.dialect import mark_of
from weft.data.guess import holds_texts
from weft.data.lines import LONGEST
from weft.data.parallel import ParallelText
from weft.data.quoting import enclosed
from weft.data.report import Finding
from weft.data.sides import AlignedText, texts
from weft.data.spans import holds_spans
from weft.data.table_style import TableStyle, style_of
from weft.data.tables import Row, TableFile
from weft.errors import ConfigError, DataError

CELLS = [
    ["id", "en", "de"],
    ["007", 'Page "A" & more', "Seite „A“"],
    ["NA", "two\nlines", "a\ttab; a comma, too"],
    ["null", "None", "'quoted'"],
    ["", "5\" disk", "1.234,5"],
    ["x", "\u2028 separators \x85", " spaces "],
]  # fmt: skip


def cells(path: Path, **settings: str) -> list[list[str]]:
    return [row.cells for row in TableFile(path, **settings)]


def found(path: Path) -> list[Row | str]:
    rows = TableFile(path).rows()
    return [str(row).replace(f"{path.parent}/", "") if isinstance(row, Finding) else row for row in rows]


def written(path: Path, rows: Sequence[Sequence[str]], encoding: str = "utf-8", **how: object) -> Path:
    text = io.StringIO()
    csv.writer(text, **how).writerows(rows)  # type: ignore[arg-type]
    path.write_bytes(text.getvalue().encode(encoding))
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize(
    ("name", "mark"),
    [("x.csv", ","), ("x.csv", ";"), ("x.csv", "\t"), ("x.csv", "|"), ("x.tsv", "\t"), ("x.tsv.gz", "\t")],
)
def test_a_text_table_is_read_as_it_was_written(
    tmp_path: Path, name: str, mark: str, quoting: int, end: str
) -> None:
    path = written(tmp_path / name, CELLS, delimiter=mark, quoting=quoting, lineterminator=end)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert cells(path) == CELLS


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    rows = [[mark + CELLS[0][0], *CELLS[0][1:]], *CELLS[1:]]
    assert cells(written(tmp_path / "x.tsv", rows, encoding, delimiter="\t")) == CELLS


@pytest.mark.parametrize("encoding", ["cp1250", "cp1252", "latin-1"])
def test_a_named_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    rows = [["a", "b"], ["café", 'Č "x"' if encoding == "cp1250" else 'é "x"']]
    for name in ("x.csv", "x.tsv"):
        path = written(tmp_path / name, rows, encoding, delimiter="\t")
        assert cells(path, encoding=encoding) == rows
        assert any("not UTF-8" in str(one) for one in found(path))


@pytest.mark.parametrize(
    ("lines", "quotes"),
    [
        (['5" disk\tx', '3" disk\ty'], False),
        (['"Hello," he said.\tx', 'He said: "Bye."\ty'], False),
        (['"Hello.\tx', 'Bye."\ty'], False),  # a quotation of two sentences, two good rows
        (['"Hello."\tx', "Bye.\ty"], False),
        (['"a ""b"""\tx', "c\ty"], True),
        (['"a', 'b"\tx', "c\ty"], True),  # a line end in a cell
        (["c\ty", '"a\tb"\tx'], True),
        (['"a"\t"x"', '"b"\t"y"'], True),
        (['"a"\t1', '"b"\t2'], True),
        (['"a, b"\tx', "c\ty"], True),  # as Excel
        (['"a, b"\tx', "c, d\ty"], False),
        (['"a ""b"""\tx', '5" disk\ty', '"c ""d"""\ty'], True),  # one line was edited by hand
        (["a\tb"], False),
    ],
)
def test_the_whole_file_says_whether_quotes_enclose_cells(lines: list[str], quotes: bool) -> None:
    assert enclosed(lines) is quotes


def test_quotes_of_plain_text_stay_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text('en\tde\n"Hi," she said.\t"Hallo", sagte sie.\n5" disk\t5"-Diskette\n')
    assert cells(path)[1:] == [['"Hi," she said.', '"Hallo", sagte sie.'], ['5" disk', '5"-Diskette']]
    assert TableFile(path).notes == [
        f"{path}: its quotes do not enclose cells as a table's do, so they are part of the text"
    ]
    path.write_text('en\tde\n"the ""new"" page"\tx\n')
    assert "are no part of the text" in TableFile(path).notes[0]
    path.write_text("en\tde\na\tb\n")
    assert TableFile(path).notes == []


def test_the_delimiter_is_that_of_all_lines() -> None:
    assert mark_of(["label,text", "a,one; two; three", "b,four; five; six"]) == ","
    assert mark_of(["a;b", "1,5;2,5", "3,5;4,5"]) == ";"
    assert mark_of(["1,5;2,5", "3,5;4,5"]) == ";"
    assert mark_of(["a;b", '"x, y, z";1', '"u, v, w";2']) == ";"
    assert mark_of([]) == mark_of(["one column"]) == ","


def test_the_first_line_of_excel_names_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("sep=;\nen;de\na, b, c;d\n")
    assert list(TableFile(tmp_path / "x.csv")) == [Row(2, ["en", "de"]), Row(3, ["a, b, c", "d"])]
    (tmp_path / "x.csv").write_text("sep=\t\nen\tde\n")
    assert cells(tmp_path / "x.csv") == [["en", "de"]]


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    long = "x" * 1_000_003
    for name, mark in (("x.csv", ","), ("x.tsv", "\t")):
        rows = [["text", "label"], [long, "a"], ['"' + long, "b"]]
        assert cells(written(tmp_path / name, rows, delimiter=mark)) == rows
    assert len(long) < LONGEST


def test_cells_without_text_may_be_missing_or_too_many_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a;b;;\n1;2;;\n3;4\n5;6;;;;\n;;;\n\n;;;\n")
    assert cells(tmp_path / "x.csv") == [["a", "b", "", ""], *[[x, y, "", ""] for x, y in ("12", "34", "56")]]
    (tmp_path / "x.csv").write_text("a;b\n1\n1;2;3\n;\n1;2\n")
    assert found(tmp_path / "x.csv") == [
        Row(1, ["a", "b"]),
        "x.csv:2: expected 2 columns, got 1; correct or remove the line",
        "x.csv:3: expected 2 columns, got 3; correct or remove the line",
        Row(4, ["", ""]),
        Row(5, ["1", "2"]),
    ]


def test_names_are_found_in_any_case_and_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('EN ,"two\nlines",Text,text,b,b\n1,2,3,4,5,6\n')
    table = TableFile(tmp_path / "x.csv")
    assert [table.find(name) for name in ("en", "two lines", "text", "none")] == [0, 1, 3, None]
    with pytest.raises(DataError, match=r"x\.csv:1: the columns 5 and 6 are both called 'b'; rename one"):
        table.find("b")


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name.removeprefix("hidden_"))
        sheet.sheet_state = "hidden" if name.startswith("hidden_") else "visible"
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_has_the_cells_of_its_table(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", Sheet=[[cell.replace("\x85", "") for cell in row] for row in CELLS])
    assert cells(path) == [[cell.replace("\x85", "") for cell in row] for row in CELLS]
    moment = datetime.datetime(2024, 1, 31, 13, 5)
    values = [1, 1.0, 0.1, 1234567890123, True, datetime.datetime(2024, 1, 31), moment, "2024", None, -7]
    (tmp_path / "y.xlsx").write_bytes(workbook(path, Sheet=[["a"] * len(values), values]).read_bytes())
    assert cells(tmp_path / "y.xlsx")[1] == [
        "1", "1", "0.1", "1234567890123", "TRUE", "2024-01-31", "2024-01-31 13:05:00", "2024", "", "-7",
    ]  # fmt: skip


def test_rows_have_the_numbers_of_their_sheet(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "x.xlsx", Sheet=[[], [None, "en", "de"], [None, "a", "b"], [], [None, "c", "d"]]
    )
    assert list(TableFile(path)) == [
        Row(2, ["en", "de"]),
        Row(3, ["a", "b"]),
        Row(4, ["", ""]),
        Row(5, ["c", "d"]),
    ]


def test_the_first_visible_sheet_is_read_and_another_can_be_named(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", hidden_old=[["o"]], empty=[], new=[["n"]], last=[["l"]])
    assert cells(path) == [["n"]] and "sheet 'new' is read; for another (last)" in TableFile(path).notes[0]
    assert "x.xlsx#last" in TableFile(path).notes[0]
    assert cells(tmp_path / "x.xlsx#last") == [["l"]] and cells(tmp_path / "x.xlsx#old") == [["o"]]
    with pytest.raises(DataError, match="expected a sheet 'None', got old, empty, new, last"):
        TableFile(tmp_path / "x.xlsx#None")
    with pytest.raises(DataError, match="expected a sheet with a table"):
        TableFile(workbook(tmp_path / "y.xlsx", empty=[], hidden_full=[["a"]]))


def test_damage_is_named(tmp_path: Path) -> None:
    for name, data, what in (
        ("x.xlsx", b"", "the file is empty"),
        ("x.xlsx", b"PK\x03\x04 no zip", "cannot be read as a workbook"),
        ("x.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 no more", "cannot be read as a workbook"),
        ("x.ods", b"text", "no workbook, although its name says so"),
        ("x.csv", b"", "the file is empty"),
        ("x.csv", b"\n\n", "expected a table, got no row"),
        ("x.jsonl", b"[1]\n", "expected a record"),
        ("x.jsonl", b"[" * 99_999, "expected a record"),
        ("x.csv", b"\0\0\0", "a NUL byte"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match=what):
            TableFile(tmp_path / name)
    with pytest.raises(DataError, match="no such file"):
        TableFile(tmp_path / "none.xlsx")
    workbook(tmp_path / "x.xlsx", Sheet=[["a"]]).rename(tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"an Excel workbook; name it \.xlsx"):
        TableFile(tmp_path / "x.csv")


def test_a_workbook_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FREE_BYTES", 1)
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(2**24 + 1))
    with pytest.raises(DataError, match=r"unpacks to 16,777,217 bytes"):
        TableFile(tmp_path / "x.xlsx")


def test_a_workbook_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "x.xlsx", Sheet=[["a"]])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ConfigError, match=r"pip install 'weft-seq\[tables\]'"):
        TableFile(path)


def test_records_have_the_keys_of_all(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"en":"a","n":1.0}\n{"n":null,"en":"b","m":2}\n{"en":[1]}\nx\n')
    assert found(tmp_path / "x.jsonl") == [
        Row(1, ["en", "n", "m"]), Row(1, ["a", "1", ""]), Row(2, ["b", "", "2"]), Row(3, ["[1]", "", ""]),
        'x.jsonl:4: expected a record such as {"text": "..."}; correct or remove the line',
    ]  # fmt: skip


def test_nested_translations_are_columns_of_languages(tmp_path: Path) -> None:
    records = [
        {"id": n, "translation": {"en": f"a {n}", "pt-BR": f"b {n}"}, "meta": {"source": "x"}} for n in (1, 2)
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (tmp_path / "x.json").write_text(json.dumps(records))
    pd.DataFrame(records).to_parquet(tmp_path / "x.parquet")
    for name in ("x.jsonl", "x.json", "x.parquet"):
        assert TableFile(tmp_path / name).first == ["id", "en", "pt-BR", "meta"]
        pairs = [(one.source, one.target) for one in ParallelText(tmp_path / name, "pt-BR", "en")]
        assert pairs == [("b 1", "a 1"), ("b 2", "a 2")]


@pytest.mark.parametrize("orient", ["records", "columns", "split", "index", "values", "table"])
def test_a_json_of_pandas_is_read_or_refused(tmp_path: Path, orient: str) -> None:
    pd.DataFrame(CELLS[1:], columns=CELLS[0]).to_json(tmp_path / "x.json", orient=orient)
    if orient in ("records", "columns"):
        assert cells(tmp_path / "x.json") == CELLS
    else:
        with pytest.raises(DataError, match=r'x\.json: expected records .* orient="records"'):
            TableFile(tmp_path / "x.json")


@pytest.mark.parametrize(
    "content", [b"<html><table></table></html>", b"en\tde\na\tb\n", b'<?xml version="1.0"?>']
)
def test_text_that_is_called_a_workbook_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.xls").write_bytes(content)
    with pytest.raises(
        DataError, match=r"x\.xls: no workbook, .* save it as \.xlsx, or rename it \.csv or \.tsv"
    ):
        TableFile(tmp_path / "x.xls")


def test_a_web_page_that_is_called_a_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("<!DOCTYPE html>\n<html><head><title>Sign in, please</title></head>\n")
    with pytest.raises(DataError, match=r"x\.csv: expected a table, got a web page; fetch the file itself"):
        TableFile(tmp_path / "x.csv")


TITLES = {
    "padded": "Report,,\nof 2024,,\n,,\nid,en,de\n1,a,b\n2,c,d\n",
    "alone": "Report\n\nid,en,de\n1,a,b\n2,c,d\n",
    "remarks": "# station 7\n# of 2024\nid;en;de\n1;a;b\n2;c;d\n",
    "merged": ",Texts,\nid,en,de\n1,a,b\n2,c,d\n",
}


@pytest.mark.parametrize("name", TITLES)
def test_titles_above_a_header_are_left_out_and_it_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.csv").write_text(TITLES[name])
    table = TableFile(tmp_path / "x.csv")
    assert [row.cells for row in table] == [["id", "en", "de"], ["1", "a", "b"], ["2", "c", "d"]]
    lines = TITLES[name].split("\n").index(next(line for line in TITLES[name].split("\n") if "id" in line))
    assert [row.number for row in table] == [lines + 1, lines + 2, lines + 3]
    assert (
        "above the header" in table.notes[0]
        and (f"1 to {lines}," if lines > 1 else "line 1,") in table.notes[0]
    )


@pytest.mark.parametrize(
    "text",
    [
        ",y\n2024-01-01,1\n2024-01-02,2\n",  # a series of pandas, whose index has no name
        "text\none\ntwo\n",
        "a,b\n,\n1,2\n",
        '"Hello, you"\n"Hi, all"\n',
        "en\nx,y\n",
    ],
)
def test_what_is_no_title_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    table = TableFile(tmp_path / "x.csv")
    assert table.number == 1 and not table.notes
    (tmp_path / "x.tsv").write_text("one side only\na\tb\nc\td\n")
    assert TableFile(tmp_path / "x.tsv").number == 1  # a line that the check reports


def test_a_cover_is_not_the_table_of_a_workbook(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", Cover=[["Read me"], ["Author", "I"]], Data=[["en", "de"]] * 3)
    table = TableFile(path)
    assert table.first == ["en", "de"] and "sheet 'Data' is read; for another (Cover)" in table.notes[0]


@pytest.mark.parametrize(("mark", "name"), [(",", "x.csv"), (";", "x.csv"), ("\t", "x.tsv")])
def test_quotes_with_a_backslash_are_read_as_mysql_and_r_write_them(
    tmp_path: Path, mark: str, name: str
) -> None:
    rows = [["en", "de"], ['He said "yes", twice', "b"], ['5" disk', "c"]]
    quoted = [mark.join('"{}"'.format(cell.replace('"', '\\"')) for cell in row) for row in rows]
    (tmp_path / name).write_text("\n".join(quoted) + "\n")
    assert cells(tmp_path / name) == rows
    (tmp_path / name).write_text(f'en{mark}de\n"C:\\"{mark}"a ""b"""\n')
    assert cells(tmp_path / name) == [["en", "de"], ["C:\\", 'a "b"']]  # a backslash of its own


def test_signs_without_width_are_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("\u00a0en ,de\u200b\n1,2\n", encoding="utf-8")
    assert TableFile(tmp_path / "x.csv").names() == ["en", "de"]


@pytest.mark.parametrize("dimension", [b"", b'<dimension ref="A1:B2"/>'])
def test_a_far_cell_is_named_whatever_the_sheet_says_of_its_size(tmp_path: Path, dimension: bytes) -> None:
    path = workbook(tmp_path / "near.xlsx", Sheet=[["a", "b"], ["1", "2"]])
    cell = b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row></sheetData>'
    for name, more in (("far.xlsx", cell), ("fine.xlsx", b"</sheetData>")):
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / name, "w") as new:
            for one in old.namelist():
                data = re.sub(rb"<dimension[^>]*/>", dimension, old.read(one))
                new.writestr(one, data.replace(b"</sheetData>", more))
    assert cells(tmp_path / "fine.xlsx") == [["a", "b"], ["1", "2"]]
    with pytest.raises(DataError, match=r"far\.xlsx: has cells up to XFD1048576; remove those far"):
        TableFile(tmp_path / "far.xlsx")


def test_a_json_may_have_a_record_on_each_line_and_says_where_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"en": "a", "es": "b"}\n{"en": "c", "es": "d"}\n')
    assert cells(path) == [["en", "es"], ["a", "b"], ["c", "d"]]
    path.write_text('{"tokens": ["a", "b"], "ner_tags": ["O", "B-X"]}\n' * 2)
    assert holds_spans(path)
    path.write_text('[{"en": "a", "es": "b"},\n {"en": "c", "e')
    with pytest.raises(DataError, match=r"train\.json:2: expected whole JSON, got a fault in column 14"):
        TableFile(path)


EXCEL = TableStyle(";", begin="\ufeff", end="\r\n", comma=True)


@pytest.mark.parametrize(
    ("name", "content", "style"),
    [
        ("a.csv", b"a,b\n1.5,2\n", TableStyle()),
        ("a.csv", b"\xef\xbb\xbfa;b\r\nx;60,94\r\n", EXCEL),
        ("a.csv", b'\xef\xbb\xbf"a\nb";c\r\nx;"1.234,5 \xe2\x82\xac"\r\ny;n/a\r\n', EXCEL),
        ("a.csv", "\ufeffa;b\r\nx;60,94\r\n".encode("utf-16-le"), EXCEL),
        ("a.csv", b"a;b;c\n60,94;21.06.2025;1.5\n", TableStyle(";", comma=True)),
        ("a.csv", b"a;b;c\n60,94;2.5;1.5\n", TableStyle(";")),
        ("a.csv", b'a,b\n"60,94",x\n', TableStyle(comma=True)),
        ("a.csv", b'a,b\n"1,234",x\n"1,234,567",y\n', TableStyle()),
        ("a.csv", b'a,b\n"x\r\ny",2\n', TableStyle()),
        ("a.tsv", b'a\tb\r\n5" disk\t2,5\r\n', TableStyle("\t", quoted=False, end="\r\n", comma=True)),
        ("a.jsonl", b'{"a": "1,5"}\n', TableStyle()),
    ],
)
def test_a_table_tells_how_it_is_written(
    name: str, content: bytes, style: TableStyle, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert style_of(TableFile(tmp_path / name)) == style


DRAWN = {
    "psql": " en  | de \n-----+----\n a b | c d\n e   | \n(2 rows)\n\n",
    "mysql": "+-----+-----+\n| en  | de  |\n+-----+-----+\n| a b | c d |\n| e   |     |\n+-----+-----+\n",
    "markdown": "| en | de |\n|:---|---:|\n| a b | c d |\n| e | |\n",
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawn_table_is_converted_by_the_command(name: str, tmp_path: Path) -> None:
    path = tmp_path / "my pairs.csv"
    path.write_text(DRAWN[name])
    with pytest.raises(DataError, match="table with drawn lines") as found:
        TableFile(path)
    subprocess.run(str(found.value).partition("convert it: ")[2], shell=True, check=True)
    rows = [row.cells for row in TableFile(path.with_suffix(".tsv"))]
    assert rows == [["en", "de"], ["a b", "c d"], ["e", ""]]


def test_bars_and_dashes_alone_are_no_drawn_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("en|de\n-|-\na|---\n")
    assert [row.cells for row in TableFile(tmp_path / "a.csv")][1:] == [["-", "-"], ["a", "---"]]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_table_of_words_is_converted_by_the_command(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "ner.csv"
    text = 'Sentence #,Word,POS,Tag\nSentence: 1,Café,NNP,B-geo\n,",",",",O\nSentence: 2,It\'s,PRP,O\n'
    path.write_bytes(text.encode(encoding))
    assert holds_tags(path) and not holds_texts(path)
    with pytest.raises(DataError, match="a table with a word in each row") as found:
        form_of(path)
    subprocess.run(str(found.value).partition("convert it: ")[2], shell=True, check=True)
    read = [(one.forms, one.tags) for one in read_sentences(path.with_suffix(".conll")) if one.forms]
    assert read == [(["Café", ","], ["B-geo", "O"]), (["It's"], ["O"])]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "en,de\na b,c d\n", "names columns (en, de); name it .csv"),
        ("a.txt", "text;label\na;b\n", "names columns (text, label); name it .csv"),
        ("a.md", DRAWN["markdown"], "table with drawn lines"),
        ("a.txt", "First, we go\nthen, we stop\n", ""),
    ],
)
def test_a_text_that_is_a_table_is_named(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (one,) = texts([tmp_path / name])
    assert isinstance(one, AlignedText)
    notes = "".join(one.notes)
    assert (told in notes) if told else not notes
