"""Lists of pictures and recordings as spreadsheets, pandas and others write them."""

import csv
import json
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas
import pytest
import soundfile
from PIL import Image

from tests.commands.shell import weft
from weft.data.audio import SPOKEN, read_spoken
from weft.data.images import (
    CAPTIONED,
    LabelledImage,
    holds_classes,
    labelled_images,
    parts_in,
    read_captions,
    read_folders,
)
from weft.data.listed import FileFinder, columns_note
from weft.data.report import Finding
from weft.errors import DataError, DataWarning
from weft.tasks.pictures.data import check_captions, check_classes
from weft.tasks.speech.data import check_recordings

ROWS = [("a.png", 'a "red" dog, asleep'), ("b c.png", "two\ncats"), ("a.png", "a dog")]


def pictures(folder: Path) -> None:
    for name, _ in ROWS:
        Image.new("RGB", (5, 5)).save(folder / name)


def test_a_list_of_common_voice_is_no_table_of_texts_by_speaker(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    rows = ["client_id\tpath\tsentence\tup_votes\tlocale"]
    for number in range(20):
        soundfile.write(
            tmp_path / "clips" / f"{number}.wav", np.sin(np.arange(4000) * (number + 1) / 99), 8000
        )
        rows.append(f"s{number % 2}\t{number}.wav\tsentence {number % 5} of it\t2\thr")
    (tmp_path / "validated.tsv").write_text("\n".join(rows) + "\n")
    answer = weft("data", "check", tmp_path / "validated.tsv")
    assert answer.code == 0 and "20 recordings" in answer.out, answer


@pytest.mark.parametrize("header", [True, False])
def test_quotes_around_cells_are_no_part_of_captions_and_said(tmp_path: Path, *, header: bool) -> None:
    pictures(tmp_path)
    frame = pandas.DataFrame(ROWS, columns=["image", "caption"])
    frame.to_csv(tmp_path / "x.tsv", sep="\t", index=False, header=header, quoting=csv.QUOTE_ALL)
    with pytest.warns(DataWarning, match="quotes enclose its cells"):
        found = read_captions(tmp_path / "x.tsv")
    assert [(one.path.name, one.captions) for one in found] == [
        ("a.png", ['a "red" dog, asleep', "a dog"]),
        ("b c.png", ["two cats"]),
    ]


def test_columns_that_are_not_known_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("LJ001|Printing|printing\n")
    said = (
        r"a\.csv:1: expected 2 columns \(FILE TAB TRANSCRIPT\), or a header with file and transcript, got 3"
    )
    with pytest.raises(DataError, match=said):
        list(read_spoken(tmp_path / "a.csv"))


def test_a_zip_from_macos_holds_only_its_pictures(tmp_path: Path) -> None:
    from weft.tasks.pictures.pictures import pictures_in

    pictures(tmp_path)
    (tmp_path / "._a.png").write_bytes(b"about a.png")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as file:
        file.write(tmp_path / "a.png", "photos/a.png")
        file.writestr("photos/.DS_Store", b"about photos")
        file.writestr("__MACOSX/photos/._a.png", b"about a.png")
    (tmp_path / "a.png").unlink()
    (tmp_path / "c.tsv").write_text("a.png\ta dog\n")
    (found,) = read_captions(tmp_path / "c.tsv")
    assert found.path == tmp_path / "images.zip" / "photos" / "a.png"
    assert [path.name for path, *_ in pictures_in(tmp_path / "images.zip", CAPTIONED)] == ["a.png"]
    assert [path.name for path, *_ in pictures_in(tmp_path, CAPTIONED)] == ["b c.png"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "x.csv",
            "id,wav,sentence\n1,a.wav,la\n",
            "columns 'wav' and 'sentence'",
        ),
        ("x.tsv", "a.wav\tla\n", "columns 1 and 2"),
        ("x.txt", "a.wav\tla\n", ""),
    ],
)
def test_a_report_names_the_columns_of_a_list(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    wanted = (f"{tmp_path / name}: {said} are read as file and transcript",) if said else ()
    assert columns_note(tmp_path / name, SPOKEN) == wanted


def test_equal_recordings_and_pictures_in_two_lists_are_named(tmp_path: Path) -> None:
    tone = (9000 * np.sin(np.arange(800))).astype(np.int16)
    for name in ("a.wav", "b.flac"):
        soundfile.write(tmp_path / name, tone, 8000)
    (tmp_path / "train.txt").write_text("a.wav\tone\n")
    (tmp_path / "test.txt").write_text("b.flac\tone\n")
    found = check_recordings([tmp_path / "train.txt", tmp_path / "test.txt"])
    assert [str(one) for one in found.findings] == [
        f"{tmp_path}/test.txt:1: b.flac is also at {tmp_path}/train.txt:1"
    ]
    for name in ("p.png", "q.bmp"):
        Image.new("RGB", (5, 5), "red").save(tmp_path / name)
    (tmp_path / "train.csv").write_text("image,caption\np.png,red\np.png,all red\n")
    (tmp_path / "test.csv").write_text("image,caption\nq.bmp,red\n")
    said = check_captions([tmp_path / "train.csv", tmp_path / "test.csv"])
    assert [str(one) for one in said.findings] == [f"{tmp_path}/q.bmp: the same picture as {tmp_path}/p.png"]
    (tmp_path / "valid.csv").write_text("image,caption\np.png,crimson\n")
    again = check_captions([tmp_path / "train.csv", tmp_path / "valid.csv"])
    assert [str(one) for one in again.findings] == [f"{tmp_path}/p.png: is in {tmp_path}/valid.csv too"]


def test_what_kaldi_does_not_read_itself_is_refused_with_a_way(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 go now\nu2 stop\n")
    (tmp_path / "wav.scp").write_text("u1 sph2pipe -f wav u1.sph |\nr a.wav\n")
    with pytest.raises(DataError, match=r"text:1: expected u1 in wav\.scp with a file or a command of cat, "):
        list(read_spoken(tmp_path))
    (tmp_path / "segments").write_text("u1 r 0 1\n")
    with pytest.raises(DataError, match="cut them with Kaldi's extract-segments"):
        list(read_spoken(tmp_path / "text"))


def test_two_files_of_one_name_are_not_guessed(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        Image.new("RGB", (5, 5)).save(tmp_path / folder / "a.png")
    (tmp_path / "z.csv").write_text("image,caption\na.png,dark\n")
    with pytest.raises(DataError, match=r"expected one image called a\.png, got .*write the folder"):
        read_captions(tmp_path / "z.csv")
    (tmp_path / "x.csv").write_text("image,caption\na.png,dark\n")
    assert read_captions(tmp_path / "x.csv")[0].path == tmp_path / "x" / "a.png"


def test_files_are_looked_for_in_a_bounded_number_of_visible_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b/c", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    pictures(tmp_path / "b" / "c")
    pictures(tmp_path / ".hidden")

    def found() -> Path | None:
        return FileFinder(tmp_path / "list.tsv", [tmp_path, tmp_path / "none"], CAPTIONED).find("a.png")

    assert found() == tmp_path / "b" / "c" / "a.png"
    monkeypatch.setattr("weft.data.listed.MOST_FOLDERS", 2)
    assert found() is None


def test_a_list_with_parts_serves_for_all_of_them(tmp_path: Path) -> None:
    parts = ("TRAIN", "TRAIN", "VALIDATION", "TEST")
    for number in range(4):
        Image.new("RGB", (5, 5), (40 * number, 0, 0)).save(tmp_path / f"{number}.png")
    rows = (f"{part},gs://bucket/{number}.png,{'ab'[number % 2]}\n" for number, part in enumerate(parts))
    (tmp_path / "x.csv").write_text("".join(rows))
    found = {
        part: [one.path.stem for one in read_folders(path, part)]
        for part, path in parts_in(tmp_path / "x.csv").items()
    }
    assert found == {"train": ["0", "1"], "valid": ["2"], "test": ["3"]}
    report = check_classes([tmp_path / "x.csv"])
    assert report.lines == {f"{tmp_path}/x.csv ({part})": len(names) for part, names in found.items()}


def test_a_first_row_whose_file_is_missing_is_no_header(tmp_path: Path) -> None:
    pictures(tmp_path)
    (tmp_path / "x.csv").write_text("b,dog\na,dog\na,cat\na,dog\na,cat\n")
    with pytest.raises(DataError, match=r"x\.csv:1: no such picture"):
        read_folders(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("id_code,diagnosis\na,dog\na,dog\na,cat\n")
    assert [one.label for one in read_folders(tmp_path / "x.csv")] == ["dog", "dog", "cat"]


def test_a_column_of_several_is_asked_for_and_named_with_the_list(tmp_path: Path) -> None:
    pictures(tmp_path)
    rows = "a.png -1  1\na.png  1 -1\n"
    (tmp_path / "attr.txt").write_text(f"2\nMale Smiling\n{rows}")
    (tmp_path / "attr.csv").write_text("image_id,Male,Smiling\n" + ",".join(rows.split()[:3]) + "\n")
    for name in ("attr.txt", "attr.csv"):
        with pytest.raises(
            DataError, match=rf"got Male, Smiling; name one: {name}#Male|name the column .{name}#Male"
        ):
            read_folders(tmp_path / name)
        assert read_folders(tmp_path / f"{name}#Smiling")[0].label == "1"
    with pytest.raises(DataError, match="expected a column 'Old', got image_id, Male, Smiling"):
        read_folders(tmp_path / "attr.csv#Old")
    for name in ("attr.txt", "attr.txt#Smiling", "attr.csv", "attr.csv#Male"):
        assert holds_classes(tmp_path / name)


def test_of_several_files_of_a_name_the_nearest_is_read_and_said(tmp_path: Path) -> None:
    for name in ("faces/1.jpg", "sorted/on/1.jpg", "a/2.jpg", "b/2.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "x.csv").write_text("image,label\n1.jpg,dog\n1.jpg,cat\n2.jpg,cat\na/2.jpg,cat\n")
    with pytest.warns(DataWarning, match=r"2 files are called 1\.jpg; .*faces/1\.jpg is read") as said:
        rows = list(labelled_images(tmp_path / "x.csv"))
    found = [one.path.parent.name for one in rows if isinstance(one, LabelledImage)]
    assert found == ["faces", "faces", "a"] and len(said) == 1
    (wrong,) = (str(one) for one in rows if isinstance(one, Finding))
    assert "x.csv:4: expected one image called 2.jpg, got " in wrong and "write the folder before" in wrong
    assert "a/2.jpg" in wrong and "b/2.jpg" in wrong


def test_a_number_after_the_name_in_a_list_with_a_folder_is_a_size(tmp_path: Path) -> None:
    pictures(tmp_path)
    path = tmp_path / "x.tsv"
    path.write_text(f"{tmp_path}\na.png\t1\nb c.png\t0\n")
    assert holds_classes(path)
    with pytest.raises(DataError, match="the number after a name is read as a size: if it is the label, rem"):
        read_folders(path)
    path.write_text("a.png\t1\nb c.png\t0\n")
    assert [one.label for one in read_folders(path)] == ["1", "0"]


def test_columns_as_lists_are_columns_and_odd_records_are_refused(tmp_path: Path) -> None:
    pictures(tmp_path)
    path = tmp_path / "x.json"
    path.write_text('{"image": ["a.png", "b c.png"], "label": ["dog", "cat"]}')
    assert [one.label for one in read_folders(path)] == ["dog", "cat"]
    for annotations in ("[1]", '[{"result": 5}]', '[{"result": [{"value": 5}]}]', "[]"):
        path.write_text(f'[{{"data": {{"image": "a.png"}}, "annotations": {annotations}}}]')
        with suppress(DataError):
            assert read_folders(path) == []


def test_a_folder_with_too_many_folders_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("x/a/b/c", "x/a/d"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr("weft.data.listed.MOST_FOLDERS", 3)
    with pytest.raises(DataError, match="expected fewer than 3 folders in it"):
        read_folders(tmp_path / "x")
    with pytest.raises(DataError, match="expected fewer than 3 folders in it"):
        list(read_spoken(tmp_path / "x"))


def test_a_folder_of_kaldi_and_annotations_of_coco_are_checked(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.ones(80) / 9, 8000)
    (tmp_path / "text").write_text("u1 go now\n")
    (tmp_path / "wav.scp").write_text("u1 a.wav\n")
    found = check_recordings([tmp_path])
    assert (found.counts, found.lines) == ({}, {str(tmp_path): 1})
    for folder in ("annotations", "val2014"):
        (tmp_path / folder).mkdir()
    Image.new("RGB", (5, 5)).save(tmp_path / "val2014" / "a.jpg")
    whole = {
        "images": [{"id": 7, "file_name": "a.jpg"}],
        "annotations": [{"image_id": 7, "caption": "dark"}],
    }
    (tmp_path / "annotations" / "captions.json").write_text(json.dumps(whole))
    (one,) = read_captions(tmp_path / "annotations" / "captions.json")
    assert (one.path, one.number) == (tmp_path / "val2014" / "a.jpg", 7)
