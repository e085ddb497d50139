"""weft data check: which task files are for, where none is named."""

from pathlib import Path

import pytest
from PIL import Image

from tests.commands import labelled
from tests.commands.shell import refused, weft


@pytest.mark.parametrize(
    ("name", "first"),
    [("x.csv", "text,label"), ("x.csv", 'id,"label","text"'), ("x.tsv", "label\ttext")],
    ids=["csv", "quoted", "tsv"],
)
def test_columns_text_and_label_are_a_classifiers(tmp_path: Path, name: str, first: str) -> None:
    cell = "\t" if name.endswith(".tsv") else ","
    rows = [cell.join(str(n) + "ab"[n % 2] for _ in first.split(cell)) for n in range(8)]
    (tmp_path / name).write_text("\n".join([first, *rows]) + "\n")
    answer = weft("data", "check", tmp_path / name)
    assert "the class '0a' has 1 text" in answer.out


def test_a_table_of_other_columns_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("review,stars\nfine,5\nbad,1 of 5\n")
    answer = weft("data", "check", tmp_path / "x.csv")
    assert "cannot tell what its columns (review, stars) are for; pass --task" in refused(answer)
    (tmp_path / "x.csv").write_text("day,load\n2024-01-01,3\n2024-01-03,x\n")
    answer = weft("data", "check", tmp_path / "x.csv")
    said = "checked as files for forecast; if they are for another task, pass --task"
    assert answer.code == 1 and said in answer.lines
    assert said not in weft("data", "check", tmp_path / "x.csv", "--task", "forecast").out


def test_a_single_file_of_no_known_form_is_told_what_it_was_taken_for(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one line of words\nand one more\n")
    answer = weft("data", "check", tmp_path / "x.txt")
    assert answer.code == 0 and "checked as files for translate" in answer.lines[-1]


def test_a_few_words_without_names_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("yes,ja\nno,nein\nmaybe,vielleicht\n")
    assert "--task translate for sentence pairs" in refused(weft("data", "check", tmp_path / "x.csv"))
    answer = weft("data", "check", tmp_path / "x.csv", "--task", "translate")
    assert "'yes' in its first row is read as a name of a column" in answer.lines[0]
    said = refused(weft("init", "translate", tmp_path / "x.csv", "--source", "en", "--target", "de"))
    assert "or write a line of names above it, such as en and de" in said
    (tmp_path / "x.csv").write_text("en,de\n" + (tmp_path / "x.csv").read_text())
    assert "x.csv: 3 pairs" in weft("data", "check", tmp_path / "x.csv").out


@pytest.mark.parametrize(
    ("header", "file", "item"),
    [("", "wav/{}.wav", "recordings"), ("path,sentence\n", "wav/{}.WAV", "recordings"),
     ("", "img/{}.png", "lines"),
     ("file_name,text\n", "img/{}.jpg", "lines")],
)  # fmt: skip
def test_lists_of_files_are_no_pairs(tmp_path: Path, header: str, file: str, item: str) -> None:
    for ending, mark in ((".csv", ","), (".tsv", "\t")):
        rows = "".join(f"{file.format(n)},the dog {n}\n" for n in range(5))
        (tmp_path / f"x{ending}").write_text((header + rows).replace(",", mark))
        answer = weft("data", "check", tmp_path / f"x{ending}")
        assert answer.code == 1 and f": 5 {item}" in answer.out, answer.out


def test_words_with_tags_are_known_by_the_ending_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "wnut.conll").write_text("in\tO\nRome\tB-location\n\nAnn\tB-person\nsees\tO\n")
    assert "wnut.conll: 2 sentences" in weft("data", "check", tmp_path / "wnut.conll").out


def test_a_task_without_files_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a\n")
    said = refused(weft("data", "check", "--task", "memory", tmp_path / "x.txt"))
    assert "generates its problems and reads no files" in said


def test_files_for_two_tasks_are_refused(tmp_path: Path) -> None:
    labelled.make_sentences(tmp_path)
    (tmp_path / "dev.tsv").write_text("a cat\teine Katze\n")
    files = tmp_path / "dev.tsv", tmp_path / "train.conllu", tmp_path / "test.conllu"
    said = refused(weft("data", "check", *files)).replace(f"{tmp_path}/", "")
    assert "dev.tsv looks like a file for translate, train.conllu like one for tag" in said
    assert "--task" in said
    assert "CoNLL-U has 10" not in weft("data", "check", *files[1:]).out
    assert weft("data", "check", *files, "--task", "tag").code == 0


def test_the_task_of_files_that_are_no_text_is_guessed_and_the_check_reports_them(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(6):
            colour = (255, n, 0) if name == "cat" else (0, n, 255)
            Image.new("RGB", (5, 5), colour).save(tmp_path / "photos" / name / f"{n}.png")
    answer = weft("data", "check", tmp_path / "photos")
    assert answer.code == 0 and "photos: 12 pictures" in answer.out, answer
    (tmp_path / "a.wav").write_bytes(b"RIFF no sound")
    answer = weft("data", "check", tmp_path / "a.wav")
    assert answer.code == 1 and "damaged, or no recording" in answer.out
    (tmp_path / "a.txt").write_bytes(b"%PDF-1.7\n")
    answer = weft("data", "check", tmp_path / "a.txt")
    assert answer.code == 1 and "a.txt: expected plain text, got a PDF" in answer.out


LEDGER = "date,store_no,amount\n" + "".join(
    f"2024-0{1 + n % 3}-{1 + n % 20:02d},{n % 2},{n * n % 11}\n" for n in range(120)
)


def test_a_ledger_is_checked_as_it_will_be_read(tmp_path: Path) -> None:
    file = tmp_path / "ledger.csv"
    file.write_text(LEDGER)
    without = weft("data", "check", file)
    assert without.code == 1 and "mean or sum of each period (data.resample, --resample)" in without.out
    how = ("--target", "amount", "--frequency", "D", "--resample", "sum")
    checked = weft("data", "check", file, *how)
    assert checked.code == 0 and "1 error" not in checked.out, checked.out
    assert "--frequency with it" in weft("data", "check", file, "--resample", "sum").out
    began = weft("init", "forecast", file, "--horizon", 2, *how, "-o", tmp_path / "x.yaml")
    assert began.code == 0
    assert f"weft data check {file} --target amount --frequency D --resample sum" in began.out


def test_the_zone_and_the_order_of_dates_are_named(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("t,y\n" + "".join(f"{n}/2/2024,{n * n % 7}\n" for n in range(1, 13)))
    assert "may begin with the day or the month" in weft("data", "check", file).out
    assert "may begin" not in weft("data", "check", file, "--dates", "day").out
    twice = [f"2024-10-27 {hour:02d}:00" for hour in (0, 1, 2, 2, *range(3, 14))]
    file.write_text("t,y\n" + "".join(f"{time},{n * n % 7}\n" for n, time in enumerate(twice)))
    assert "clocks went back" in weft("data", "check", file).out
    assert weft("data", "check", file, "--zone", "Europe/Zagreb").code == 0
    assert "files for forecast" in weft("data", "check", file, "--zone", "Mars").out


def test_a_number_in_place_of_missing_values_is_named(tmp_path: Path) -> None:
    days = [f"2024-01-{n:02d}" for n in range(1, 29)]
    for code, said in (("-999", "-999 in 2 rows, 10 to 16"), ("99.9", "99.9 in 2 rows"), ("9", "")):
        rows = [f"{day},{code if n in (4, 9) else 10 + n * n % 7 + n % 3}\n" for n, day in enumerate(days)]
        (tmp_path / "x.csv").write_text("".join(["day,y\n", *rows]))
        answer = weft("data", "check", tmp_path / "x.csv")
        assert answer.code == 0 and (said in answer.out if said else "leave the cells" not in answer.out)


@pytest.mark.parametrize("rows", [0, 2, 3, 9])
def test_labelled_texts_are_ready_if_training_takes_them(tmp_path: Path, rows: int) -> None:
    file, recipe = tmp_path / "x.csv", tmp_path / "x.yaml"
    file.write_text(
        "\n".join(["text,label", *(f"word{n} and more,{'ab'[n % 2]}" for n in range(rows))]) + "\n"
    )
    checked = weft("data", "check", file, "--task", "classify")
    made = weft("init", "classify", file, "-o", recipe)
    trained = made.code or weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=1").code
    assert (checked.code, trained) == ((0, 0) if rows == 9 else (1, 2))


@pytest.mark.parametrize(
    ("name", "text", "task"),
    [("x.txt", "\n\n", "language"), ("x.conllu", "\n", "tag"), ("x.csv", "en,de\n", "translate")],
)
def test_files_with_nothing_to_train_on_are_not_ready(
    tmp_path: Path, name: str, text: str, task: str
) -> None:
    (tmp_path / name).write_text(text)
    assert weft("data", "check", tmp_path / name, "--task", task).code == 1


def test_periods_that_the_reader_inserts_are_no_rows_of_the_file(tmp_path: Path) -> None:
    days = [n for n in range(1, 31) if n not in (7, 8, 20)]
    cells = ["" if n == 12 else str(n % 5) for n in days]
    rows = [f"2024-01-{day:02d},{cell}" for day, cell in zip(days, cells, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["day,load", *rows]) + "\n")
    answer = weft("data", "check", tmp_path / "x.csv").out
    assert "x.csv: 27 rows" in answer and "column load: 1 of 27 values are missing" in answer
    assert "inserted 3 missing periods" in answer
    (tmp_path / "x.csv").write_text("day,load\n" + "".join(f"{row.partition(',')[0]},7\n" for row in rows))
    answer = weft("data", "check", tmp_path / "x.csv").out
    assert "values are missing" not in answer and "column load never changes" in answer
