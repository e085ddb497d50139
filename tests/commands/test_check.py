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


def test_a_table_of_other_columns_is_of_series_and_the_answer_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("review,stars\nfine,five\nbad,one\n")
    answer = weft("data", "check", tmp_path / "x.csv")
    said = "checked as files for forecast; if they are for another task, pass --task"
    assert answer.code == 1 and said in answer.lines
    assert said not in weft("data", "check", tmp_path / "x.csv", "--task", "forecast").out


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
        Image.new("RGB", (5, 5), "red" if name == "cat" else "blue").save(
            tmp_path / "photos" / name / "1.png"
        )
    answer = weft("data", "check", tmp_path / "photos")
    assert answer.code == 0 and "photos: 2 pictures" in answer.out, answer
    (tmp_path / "a.wav").write_bytes(b"RIFF no sound")
    answer = weft("data", "check", tmp_path / "a.wav")
    assert answer.code == 1 and "damaged, or no recording" in answer.out
    (tmp_path / "a.txt").write_bytes(b"%PDF-1.7\n")
    answer = weft("data", "check", tmp_path / "a.txt")
    assert answer.code == 1 and "a.txt: expected plain text, got a PDF" in answer.out
