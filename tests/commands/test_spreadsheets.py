"""Sentence pairs and labelled texts from spreadsheets: every command reads the same cells."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import openpyxl
import pytest

from tests.commands.corpus import WORDS
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from tests.slow import slow
from weft.data.parallel import ParallelText
from weft.errors import DataError
from weft.tasks.seq2seq.glossary import read_glossary

Rows = Sequence[Sequence[str]]
WORDS_OF_ROWS = [" ".join(list(WORDS)[n % 5 : n % 5 + 1 + n % 4]) + f" {n}" for n in range(60)]
ROWS = [
    ["ID", "Source text", "Hrvatski/prijevod", "Comment"],
    *([f"{n}", line, f"{line} \u201ex\u201c", "ok" if n % 3 else ""] for n, line in enumerate(WORDS_OF_ROWS)),
]
ROWS[4][1] = 'Page "" & "Next", please'
ROWS[4][2] = "Stranica\nSljedeća"
ROWS[5][1] = '"Hello," she said.'


def text(path: Path, rows: Rows, mark: str, encoding: str) -> Path:
    with open(path, "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    return path


def workbook(path: Path, rows: Rows) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    book.save(path)
    return path


WRITERS: dict[str, Callable[[Path, Rows], Path]] = {
    "pairs.csv": lambda path, rows: text(path, rows, ",", "utf-8"),
    "semicolons.csv": lambda path, rows: text(path, rows, ";", "utf-8-sig"),
    "pairs.tsv": lambda path, rows: text(path, rows, "\t", "utf-8"),
    "unicode.tsv": lambda path, rows: text(path, rows, "\t", "utf-16"),
    "pairs.xlsx": workbook,
}


@pytest.mark.parametrize("name", WRITERS)
def test_pairs_are_the_cells_of_two_columns(tmp_path: Path, name: str) -> None:
    path = WRITERS[name](tmp_path / name, ROWS)
    pairs = list(ParallelText(path, "Source text", "hrvatski/prijevod"))
    assert [pair[1:] for pair in pairs] == [(row[1], row[2].replace("\n", " ")) for row in ROWS[1:]]
    assert pairs[3].source == 'Page "" & "Next", please' and pairs[3].target == "Stranica Sljedeća"
    checked = weft("data", "check", path, "--source", "Source text", "--target", "Hrvatski/prijevod")
    assert checked.code == 0 and f"{path}: 60 pairs" in checked.lines
    guessed = weft("data", "check", path)
    assert guessed.code == 0 and f"{path}: 60 pairs" in guessed.lines
    assert "'Source text' and 'Hrvatski/prijevod' are read as the two sides" in guessed.out


@pytest.mark.parametrize("name", slow(["pairs.xlsx", "semicolons.csv"]))
def test_a_spreadsheet_is_checked_split_trained_on_scored_and_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    WRITERS[name](Path(name), ROWS)
    columns = ("--source", "Source text", "--target", "Hrvatski/prijevod")
    weft("init", "translate", name, *columns, "--hold-out", 5, code=0)
    assert Path("Source-text-Hrvatski-prijevod.yaml").exists()
    stem = Path(name).stem
    rest, held = (list(ParallelText(f"{stem}.{part}.tsv", *columns[1::2])) for part in ("rest", "held"))
    assert len(rest) == 55 and len(held) == 5
    both = {pair[1:] for pair in (*rest, *held)}
    assert both == {(row[1], row[2].replace("\n", " ")) for row in ROWS[1:]}
    small = (
        "model.encoder.sizes=[8]",
        "model.decoder.sizes=[8]",
        "model.embedding.size=8",
        "decoding.beam=1",
    )
    weft(
        "train", "Source-text-Hrvatski-prijevod.yaml", "--run", "run", *small, "training.max_updates=1",
        f"data.train={name}", f"data.test={name}", code=0)  # fmt: skip
    scored = weft("evaluate", "run", "--data", name)
    assert scored.code == 0 and "60 pairs" in scored.out
    other = WRITERS[name](Path(f"other-{name}"), [["Nr", "Was", "Sto", ""], *ROWS[1:]])
    renamed = weft("evaluate", "run", "--data", other, "--source", "Was", "--target", "sto")
    scores = [[line for line in one.lines[1:] if "sentences/s" not in line] for one in (renamed, scored)]
    assert renamed.code == 0 and scores[0] == scores[1]
    assert "expected a column 'Source text'" in refused(weft("evaluate", "run", "--data", other))
    assert "give the table with --data" in refused(weft("evaluate", "run", "--source", "Was"))
    Path("in.txt").write_text("".join(f"{row[1]}\n" for row in ROWS[1:]))
    assert weft("predict", "run", name).lines == weft("predict", "run", "in.txt").lines
    assert weft("predict", "run", stdin=Path(name).read_bytes()).out == weft("predict", "run", name).out
    said = refused(weft("predict", "run", name, "--output", "out.xlsx"))
    assert "out.xlsx: answers are written as text, not as .xlsx" in said
    assert "not as .tsf; name it .csv" in refused(weft("predict", "run", name, "--output", "out.tsf"))


def test_languages_and_sides_are_found_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [["ID", "English", "German", "Note"], *([f"{n}", f"a {n}", f"ein {n}", "x"] for n in range(40))]
    text(Path("x.csv"), rows, ";", "utf-8")
    assert next(iter(ParallelText("x.csv", "en", "de")))[1:] == ("a 0", "ein 0")
    checked = weft("data", "check", "x.csv")
    assert checked.code == 0 and checked.lines[:2] == [
        "x.csv: columns 'English' and 'German' are read as the two sides; --source and --target name others",
        "x.csv: 40 pairs",
    ]
    began = weft("init", "translate", "x.csv", "--hold-out", 4, code=0)
    assert "columns 'English' and 'German' are read as source and target" in began.lines[0]
    assert Path("x.rest.English").read_text().count("\n") == 36 and Path("English-German.yaml").exists()
    text(Path("y.csv"), [["a", "b"], ["c", "d"]], ",", "utf-8")
    assert [pair[1:] for pair in ParallelText("y.csv", "en", "de")] == [("a", "b"), ("c", "d")]
    with pytest.raises(
        DataError, match=r"x\.csv:1: expected a column 'hr', got ID, English, German, Note; name"
    ):
        ParallelText("x.csv", "en", "hr")
    began = weft("init", "translate", "x.csv", "x.csv", "--source", "en", "--target", "de", "-o", "z.yaml")
    assert began.code == 0 and "valid: x.csv" in Path("z.yaml").read_text()


def test_a_table_or_a_workbook_that_is_called_a_text_is_told(tmp_path: Path) -> None:
    run = shared_run("translate")
    workbook(tmp_path / "book.xlsx", [["xx", "yy"], ["alpha", "uno"]]).rename(tmp_path / "in.txt")
    said = refused(weft("predict", run, tmp_path / "in.txt"))
    assert "in.txt: expected plain text, got an Excel workbook" in said and "iconv" not in said
    assert "got an Excel workbook" in refused(weft("evaluate", run, "--data", tmp_path / "in.txt"))
    text(tmp_path / "tabs.txt", [["alpha", "uno"], ["beta", "due"]], "\t", "utf-16")
    checked = weft("data", "check", tmp_path / "tabs.txt")
    assert "its lines have tabs; name it .tsv to have its columns read" in checked.lines[0]


def test_the_source_of_each_row_is_translated(tmp_path: Path) -> None:
    run = shared_run("translate")
    plain = weft("predict", run, stdin=b"alpha beta\ngamma\n").lines
    for rows in (
        [["id", "yy", "XX"], ["1", "", "alpha beta"], ["2", "x", "gamma"]],
        [["alpha beta", "uno"], ["gamma", ""]],
        [["alpha beta"], ["gamma"]],
    ):
        table = workbook(tmp_path / "in.xlsx", rows)
        assert weft("predict", run, table).lines == plain
        assert weft("predict", run, table, "--output", tmp_path / "out.txt").code == 0
        assert (tmp_path / "out.txt").read_text().splitlines() == plain
    text(tmp_path / "in.csv", [["id", "en"], ["1", "alpha"]], ",", "utf-8")
    said = refused(weft("predict", run, text(tmp_path / "in.csv", [["id", "en", "x"]], ",", "utf-8")))
    assert "in.csv:1: expected a column 'xx', got id, en, x; call the column of the texts so" in said
    (tmp_path / "in.csv").write_text("id,xx\n1,alpha,beta\n2,gamma\n")
    answer = weft("predict", run, tmp_path / "in.csv")
    assert answer.code == 3 and answer.lines == ["", plain[1]]
    assert "in.csv:2: expected 2 columns, got 3" in answer.err


@pytest.mark.parametrize("name", WRITERS)
def test_a_glossary_may_be_a_table(tmp_path: Path, name: str) -> None:
    rows = [["ID", "English", "German"], ["1", "cell", "Zelle"], ["2", "two\nlines", 'zwei "Zeilen"']]
    for kept in (rows, [row[1:] for row in rows], [["term", "translation"], *(row[1:] for row in rows[1:])]):
        glossary = read_glossary(
            WRITERS[name](tmp_path / name, kept).rename(tmp_path / f"{len(kept[0])}{name}")
        )
        assert glossary.required("a cell of two lines") == ("Zelle", 'zwei "Zeilen"')
        (tmp_path / f"{len(kept[0])}{name}").unlink()
        assert glossary.required("English") == () and glossary.required("term") == ()
    with pytest.raises(DataError, match="expected two columns"):
        read_glossary(WRITERS[name](tmp_path / name, [["a", "b", "c"], ["d", "e", "f"]]))


@pytest.mark.parametrize(
    ("first", "count"),
    [
        (["English", "Deutsch"], 2),
        (["Source text", "Translation"], 2),
        (["A cat sleeps", "Eine Katze schläft"], 3),
    ],
)
def test_the_check_and_the_recipe_agree_on_the_header_of_two_columns(
    tmp_path: Path, first: list[str], count: int
) -> None:
    rows = [first, ["Good day", "Guten Tag"], ["A red door", "Eine rote Tür"]]
    table = text(tmp_path / "pairs.csv", rows, ",", "utf-8")
    checked = weft("data", "check", table)
    assert checked.code == 0 and f"{table}: {count} pairs" in checked.lines
    began = weft("init", "translate", table, "--output", tmp_path / "r.yaml")
    if count == 2:
        assert f"{first[0]} to {first[1]}: 2 training pairs" in began.out
    else:
        assert "no header" in refused(began)
        began = weft(
            "init", "translate", table, "--source", "en", "--target", "de", "-o", tmp_path / "r.yaml"
        )
        assert "3 training pairs" in began.out


def test_three_columns_without_names_are_told(tmp_path: Path) -> None:
    rows = [[f"word {n} of a text", f"Wort {n} im Text", "ok"] for n in range(6)]
    checked = weft("data", "check", text(tmp_path / "pairs.csv", rows, ",", "utf-8"), "--task", "translate")
    assert checked.code == 1 and "pairs.csv:1: " in checked.err + checked.out
    assert "write their names into a first line" in checked.err + checked.out
