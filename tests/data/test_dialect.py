"""Tables as saved by spreadsheets: delimiters, decimal commas, dates, encodings, any column names."""

from pathlib import Path

import numpy as np
import pytest

from tests.commands.shell import refused, weft
from weft.data.corpora import corpus
from weft.data.dialect import iso, order_of, plain_numbers
from weft.data.guess import columns_of, series_of, texts_of
from weft.data.labelled import LabelledText
from weft.data.lines import advice, guess, read_lines
from weft.data.series import Columns, read_series
from weft.errors import ConfigError, DataError
from weft.tasks.forecast.data import guessed

CROATIAN = "Đak šeće čaškom, žličica.\n"


def rows(*cells: str) -> list[tuple[int, list[str]]]:
    return [(line, [cell]) for line, cell in enumerate(cells, 2)]


@pytest.mark.parametrize(
    ("cells", "mark", "numbers"),
    [
        (["1,5", "-2,25", "7"], ";", [1.5, -2.25, 7]),
        (["1.234,5", "1.000", "1 234,5"], ";", [1234.5, 1000, 1234.5]),
        (["1,500", "2,250"], ";", [1.5, 2.25]),
        (["1,500", "0.5", "1,234,567.25"], ";", [1500, 0.5, 1234567.25]),
        (["1,500", "2"], ",", [1500, 2]),
        (["1.5", "1.250"], ";", [1.5, 1.25]),
        (["1,540.82", "12,345,678.9", "7"], ",", [1540.82, 12345678.9, 7]),
        (["$1,540.82", "-$2.00", "($3.50)"], ",", [1540.82, -2, -3.5]),
        (["1.540,82 €", "-2,00 €"], ";", [1540.82, -2]),
        (["CHF 1'540.50", "CHF 2"], ",", [1540.5, 2]),
        (["68.1%", "7 %"], ",", [68.1, 7]),
        (["1\u202f540,82", "1\u00a0234\u00a0567"], ";", [1540.82, 1234567]),
        (["1,15,540.50", "12,34,567"], ",", [115540.5, 1234567]),
        (["(5)", "5.5-", "\u22122.5", "+1"], ",", [-5, -5.5, -2.5, 1]),
        (["1,54082E+03", "2,5e-1"], ";", [1540.82, 0.25]),
        (["1.541", "980"], ";", [1541, 980]),  # nobody writes 980 beside 1.541 and means 1.541
        (["1,541", "980"], ";", [1541, 980]),
        (["1.541", "980"], ",", [1.541, 980]),
        (["1.541", "1980"], ";", [1.541, 1980]),
    ],
)
def test_numbers_have_points(cells: list[str], mark: str, numbers: list[float]) -> None:
    assert [float(row[0]) for _, row in plain_numbers(rows(*cells), mark).rows] == numbers


def test_what_is_assumed_of_numbers_is_said_by_column(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("day;a;b;c\n2023-01-02;1.541;5 €;1,5\n2023-01-03;2.309;7 €;2\n")
    table = read_series(tmp_path / "x.csv")
    assert table.series[0].values.tolist() == [[1541, 5, 1.5], [2309, 7, 2]]  # the comma of c proves it
    assert [note.split("; ")[0] for note in table.assumed] == [
        f"{tmp_path / 'x.csv'}: in column b numbers such as '7 €' are read as 7"
    ]
    (tmp_path / "x.csv").write_text("day;a\n2023-01-02;1.541\n2023-01-03;2.309\n")
    table = read_series(tmp_path / "x.csv")
    assert table.series[0].values.tolist() == [[1.541], [2.309]]
    assert "in column a numbers such as '2.309' are read as 2.309; write" in table.assumed[0]


@pytest.mark.parametrize(
    "cells", [["5 €", "7 $"], ["5 kg", "7 kg"], ["5 €", "7"], ["(5", "7)"], ["--5", "€"]]
)
def test_numbers_of_several_units_are_not_read(cells: list[str]) -> None:
    assert plain_numbers(rows(*cells), ",").rows == rows(*cells)


def test_a_column_of_texts_stays_although_some_are_numbers() -> None:
    cells = ["(5)", "a", "b", "c", "1'000"]
    assert plain_numbers(rows(*cells), ",").rows == rows(*cells)


def test_two_decimal_marks_are_left_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("day;a\n2023-01-02;1,55\n2023-01-03;1.5\n")
    with pytest.raises(DataError, match=r"x\.csv:2: .*'1,55' in column a is"):
        read_series(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("cells", "order", "first"),
    [
        (["01.02.2024", "02.02.2024"], "day", "2024-02-01"),
        (["31/01/2024", "01/02/2024"], "day", "2024-01-31"),
        (["01/31/2024", "02/01/2024"], "month", "2024-01-31"),
        (["01/02/2024", "02/01/2024"], "month", "2024-01-02"),  # with the day first, dates would go backwards
        (["11/12/24 13:05", "13/12/24 13:05"], "day", "2024-12-11 13:05"),
        (["2024-02-01"], "day", "2024-02-01"),
    ],
)
def test_the_order_of_day_and_month_is_told(cells: list[str], order: str, first: str) -> None:
    found = order_of("x.csv", list(enumerate(cells, 2)))
    assert (found, iso(cells[0], found)) == (order, first)


def test_an_order_that_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("day,a\n01/01/2024,1\n01/02/2024,2\n01/03/2024,3\n")
    with pytest.raises(DataError, match=r"x.csv:2: .*data.dates"):
        read_series(file)
    days = read_series(file, Columns(dates="month")).series[0].times
    months = read_series(file, Columns(dates="day")).series[0].times
    assert days[-1] == np.datetime64("2024-01-03") and months[-1] == np.datetime64("2024-03-01")


def shops(file: Path) -> Path:
    lines = [
        f"{day:02}.01.2024;{shop};1.00{day % 10},5;{day % 2};x\n" for shop in "NS" for day in range(1, 29)
    ]
    file.write_text("Datum;Filiale;Umsatz;Feiertag;Notiz\n" + "".join(lines))
    return file


def test_columns_of_any_name_are_guessed_and_told(tmp_path: Path) -> None:
    file = shops(tmp_path / "shops.csv")
    found = series_of(columns_of(file))
    assert found == (("Datum",), ("Filiale",), ("Umsatz", "Feiertag"), ("Notiz",))
    with pytest.raises(ConfigError, match="--target"):
        guessed(file, Columns())
    which, note = guessed(file, Columns(known=["Feiertag"]))
    assert (which.time, which.id, which.targets) == (
        ("Datum",),
        ("Filiale",),
        ("Umsatz",),
    ) and "'Notiz'" in note
    table = read_series(file, which)
    assert [one.name for one in table.series] == ["N", "S"] and table.long
    assert table.series[0].values[:2, 0].tolist() == [1001.5, 1002.5]


@pytest.mark.parametrize(
    ("header", "row", "which", "target"),
    [
        ("id,date,store_nbr,item_nbr,unit_sales,onpromotion", "{n},{day},{a},{b}07,{n}.5,False",
         "store_nbr item_nbr", "unit_sales"),
        ("Store,DayOfWeek,Date,Sales,Customers,Open,Promo,StateHoliday", "{a},1,{day},{n}00,9,1,0,{x}",
         "Store", "Sales"),
        ("Store,Dept,Date,Weekly_Sales,IsHoliday", "{a},{b},{day},{n}00.5,TRUE",
         "Store Dept", "Weekly_Sales"),
        ("date,store,item,sales", "{day},{a},{b},{n}", "store item", "sales"),
        ("date,country,store,product,num_sold", "{day},Peru,s{a},p{b},{n}", "store product", "num_sold"),
    ],
)  # fmt: skip
def test_the_ids_and_the_target_of_usual_tables_of_sales_are_guessed(
    tmp_path: Path, header: str, row: str, which: str, target: str
) -> None:
    days = [f"2015-07-{day:02}" for day in range(1, 15)]
    products = ["1"] if "DayOfWeek" in header else ["1", "2", "3"]
    rows = [(day, a, b) for day in days for a in "1234" for b in products]
    lines = [
        row.format(day=day, a=a, b=b, n=n, x="a" if n % 9 == 0 else 0) for n, (day, a, b) in enumerate(rows)
    ]
    (tmp_path / "x.csv").write_text("\n".join([header, *lines]) + "\n")
    found, note = guessed(tmp_path / "x.csv", Columns())
    assert found.targets == (target,) and f"to forecast {target!r}" in note
    assert [name for name in found.id if name != "country"] == which.split()
    assert len(read_series(tmp_path / "x.csv", found).series) == 4 * len(products)


@pytest.mark.parametrize("missing", ["null", "NA", "-", "#N/A", "."])
def test_a_column_with_missing_values_is_of_numbers(tmp_path: Path, missing: str) -> None:
    lines = [f"2024-01-0{day},{missing if day == 2 else day},{day}\n" for day in range(1, 8)]
    (tmp_path / "x.csv").write_text("Date,Open,Close\n" + "".join(lines))
    which, note = guessed(tmp_path / "x.csv", Columns())
    assert which.time == ("Date",) and "'Open', 'Close'" in note and "left out" not in note


def test_init_writes_what_it_guessed_and_trains_on_it(tmp_path: Path) -> None:
    file, recipe = shops(tmp_path / "shops.csv"), tmp_path / "x.yaml"
    answer = weft("init", "forecast", "--file", file, "--horizon", 2, "--target", "Umsatz",
                  "--known", "Feiertag", "-o", recipe, code=0)  # fmt: skip
    assert "names of series 'Filiale'" in answer.lines[0]
    assert 'id: "Filiale"' in recipe.read_text() and 'time: "Datum"' in recipe.read_text()
    weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=1", code=0)
    assert weft("data", "check", file).code == 0


def test_several_known_columns_stand_in_one_option(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("day,a,b,c\n" + "".join(f"2024-01-{n:02},{n % 5},{n % 2},0\n" for n in range(1, 31)))
    asked = ("init", "forecast", "--file", file, "--horizon", 2, "-o", tmp_path / "x.yaml", "--known", "b, c")
    assert weft(*asked).code == 0
    assert 'known: ["b", "c"]' in (tmp_path / "x.yaml").read_text()


def tickets(file: Path, encoding: str = "utf-8") -> Path:
    kinds = {"billing": "refund", "tech": "crash"}
    lines = [
        f'{n};{n % 28 + 1}.1.2024;"please; the {word} of my žuti account";{kind}\n'
        for n in range(30)
        for kind, word in kinds.items()
    ]
    file.write_text("id;created;subject;queue\n" + "".join(lines), encoding=encoding)
    return file


def test_a_table_of_tickets_is_a_classifiers(tmp_path: Path) -> None:
    file = tickets(tmp_path / "tickets.csv")
    assert texts_of(columns_of(file)) == (["subject"], "queue")
    checked = weft("data", "check", file)
    assert checked.lines[0].endswith(
        "'subject' is read as the text and 'queue' as its class; --text and --label name others"
    )
    recipe = tmp_path / "x.yaml"
    assert weft("init", "classify", "--train", file, "-o", recipe).code == 0
    weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=30", code=0)
    named = weft("init", "classify", "--train", file, "-o", tmp_path / "y.yaml", "--label", "created")
    assert named.code == 0 and "label: created" in (tmp_path / "y.yaml").read_text()
    answer = weft("predict", tmp_path / "run", file, "--scores")
    assert answer.lines[0] == "id;created;subject;queue;predicted;predicted=billing;predicted=tech"
    assert len(answer.lines) == 61
    assert answer.lines[1].startswith('0;1.1.2024;"please; the refund of my žuti account";billing;')
    weft("predict", tmp_path / "run", file, "--output", tmp_path / "out.csv")
    (tmp_path / "out.csv").write_text((tmp_path / "out.csv").read_text().replace("predicted", "label"))
    read = LabelledText(tmp_path / "out.csv", text="subject", label="label")
    assert {one.label for one in read} <= {"billing", "tech"} and len(list(read)) == 60


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (CROATIAN, "cp1250", "WINDOWS-1250"),
        (CROATIAN, "iso8859-2", "ISO-8859-2"),
        ("Привет, мир\n", "cp1251", "WINDOWS-1251"),
        ("Dosyayı açın ve Yazdır'ı tıklatın.\n", "cp1254", "WINDOWS-1254"),
        ("פתח את הקובץ ולחץ על הדפס. שמור את המסמך וסגור אותו. כיצד להוסיף טבלה\n", "cp1255", "WINDOWS-1255"),
        ("افتح الملف وانقر فوق طباعة.\n", "cp1256", "WINDOWS-1256"),
        ("เปิดไฟล์แล้วคลิกพิมพ์\n", "cp874", "CP874"),
        ("ファイルを開いて、印刷をクリックします。文書を保存してください。\n", "euc_jp", "EUC-JP"),
        ("ファイルを開いて、印刷をクリックします。文書を保存してください。\n", "cp932", "CP932"),
        ("파일을 열고 인쇄를 클릭합니다. 문서를 저장한 다음 닫으십시오.\n", "euc_kr", "CP949"),
        ("plain text\n", "utf-16-le", "UTF-16LE"),
        ("plain text\n", "utf-16-be", "UTF-16BE"),
    ],
)
def test_the_encoding_is_named_with_the_command_that_converts(
    tmp_path: Path, text: str, encoding: str, name: str
) -> None:
    file = tmp_path / "my file.csv"
    file.write_bytes(text.encode(encoding) * 3)
    assert guess(file.read_bytes()) == (name,)
    with pytest.raises(DataError) as caught:
        list(read_lines(file))
    assert str(caught.value).endswith(f"iconv -f {name} -t UTF-8 '{file}' > '{tmp_path}/my file.utf8.csv'")
    assert file.read_bytes().decode(name).startswith(text)  # names in Python work as well


def test_a_text_too_short_to_tell_its_encoding_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("naïve\n".encode("cp1252"))
    with pytest.raises(
        DataError, match=r"x\.txt:1: not UTF-8 .* the encoding is unclear: .* or .*; convert the file"
    ):
        list(read_lines(tmp_path / "x.txt"))


def test_a_word_tells_its_encoding_if_no_other_explains_it() -> None:
    for text, encoding, name in (
        ("Привет", "koi8-r", "KOI8-R"),
        ("Україна", "cp1251", "WINDOWS-1251"),
        ("Καλημέρα", "cp1253", "WINDOWS-1253"),
        ("مرحبا", "cp1256", "WINDOWS-1256"),
        ("Это не тот файл", "cp866", "IBM866"),
    ):
        assert guess(text.encode(encoding)) == (name,), text


@pytest.mark.parametrize(
    ("language", "encoding", "name"),
    [
        ("de", "cp1252", "WINDOWS-1252"),
        ("es", "cp1252", "WINDOWS-1252"),
        ("fr", "cp1252", "WINDOWS-1252"),
        ("pl", "cp1250", "WINDOWS-1250"),
        ("pl", "iso8859-2", "ISO-8859-2"),
        ("ru", "cp1251", "WINDOWS-1251"),
        ("ru", "koi8-r", "KOI8-R"),
    ],
)
def test_the_encoding_of_a_long_text_is_told(language: str, encoding: str, name: str) -> None:
    lines = [pair.target for pair in corpus("libreoffice-help", "en", language, "valid")][:500]
    assert guess("\n".join(lines).encode(encoding, "ignore")) == (name,)
    for raw in (line.encode(encoding, "ignore") for line in lines[:50]):
        found = guess(raw)
        assert len(found) != 1 or raw.decode(found[0]) == raw.decode(encoding)  # unclear, but never wrong


def test_a_file_in_another_encoding_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(CROATIAN.encode("cp1250") * 7)
    answer = weft("data", "check", "--task", "language", file)
    assert answer.code == 1 and answer.out.count("iconv") == 1
    assert answer.lines[-1].endswith("(6 more such lines)")
    said = refused(weft("init", "classify", "--train", tickets(tmp_path / "t.csv", "cp1250")))
    assert "iconv -f WINDOWS-125" in said  # in both, 0x9e is ž


def test_one_bad_line_among_good_ones_is_no_other_encoding(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(CROATIAN.encode() * 3 + b"caf\xe9\n")
    assert "other lines are UTF-8" in advice(str(file), b"caf\xe9")
    assert guess(b"\x00\x01\x02\x00\x00") == ()
