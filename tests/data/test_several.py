"""Several files as one text, for every task, and what is held out: one of each block, always the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.commands.shell import weft as run
from weft.data.parallel import ParallelText, hold_out
from weft.data.plain import PlainText
from weft.data.several import is_held_out
from weft.errors import ConfigError, DataError
from weft.tasks.classify.data import LabelData
from weft.tasks.images.data import ClassData
from weft.tasks.pictures.data import CaptionData
from weft.tasks.running_text.base import ProseData
from weft.tasks.seq2seq.sections import PairData
from weft.tasks.speech.data import SpeechData
from weft.tasks.tag.data import TagData

UNIT = '<tu><tuv xml:lang="en-US"><seg>{}</seg></tuv><tuv xml:lang="es-ES"><seg>{}</seg></tuv></tu>'


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """A table, a memory with regions of its languages, and a folder with another table."""
    (tmp_path / "a.tsv").write_text("English\tSpanish\none\tuno\ntwo\tdos\n")
    body = UNIT.format("two", "dos") + "\n" + UNIT.format("three", "tres")
    (tmp_path / "b.tmx").write_text(f"<tmx><header srclang='en-US'/><body>\n{body}</body></tmx>\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.tsv").write_text("four\tcuatro\n")
    (tmp_path / "more" / ".hidden").write_text("x")
    return tmp_path


def test_tables_memories_and_folders_are_one_text_of_two_languages(memories: Path) -> None:
    text = ParallelText([memories / name for name in ("a.tsv", "b.tmx", "more")], "en", "es")
    pairs = list(text)
    assert [pair[1:] for pair in pairs] == [
        ("one", "uno"),
        ("two", "dos"),
        ("two", "dos"),
        ("three", "tres"),
        ("four", "cuatro"),
    ]
    assert [text.place(pair.number) for pair in pairs][1:4] == [
        f"{memories}/a.tsv:3",
        f"{memories}/b.tmx:2",
        f"{memories}/b.tmx:3",
    ]
    assert text.files == [memories / "a.tsv", memories / "b.tmx", memories / "more" / "c.tsv"]
    assert text.repeats() == [f"{memories}/b.tmx: 1 of 2 are in the files before it, too"]


def test_pairs_are_held_out_of_all_files_together(memories: Path) -> None:
    data = PairData(source="en", target="es", folder=memories, train=["a.tsv", "b.tmx", "more"], hold_out=2)
    parts = [list(data.open(split)) for split in ("train", "valid")]
    assert sorted(pair.target for part in parts for pair in part) == ["cuatro", "dos", "dos", "tres", "uno"]
    assert all(parts) and data.describe("valid") == "one pair of 2 of a.tsv and 2 more en-es"


def test_a_file_that_is_named_twice_or_missing_is_refused(memories: Path) -> None:
    with pytest.raises(DataError, match=r"c\.tsv: is in the list of training files twice"):
        ParallelText([memories / "more", memories / "more" / "c.tsv"], "en", "es")
    with pytest.raises(DataError, match=r"gone\.tsv"):
        ParallelText([memories / "a.tsv", memories / "gone.tsv"], "en", "es")


def test_init_reads_several_memories_and_the_file_that_is_called_valid(
    memories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(memories)
    (memories / "dev.tsv").write_text("English\tSpanish\nfive\tcinco\n")
    found = run("init", "translate", "a.tsv", "b.tmx", "dev.tsv")
    assert found.code == 0, found.err
    recipe = (memories / "en-es.yaml").read_text()
    assert "train: [a.tsv, b.tmx]" in recipe and "valid: dev.tsv" in recipe
    assert "b.tmx: 1 of 2 are in the files before it, too" in found.out
    assert "data check a.tsv b.tmx" in found.out
    checked = run("data", "check", "a.tsv", "b.tmx")
    assert checked.code == 0 and "source also occurs in an earlier text: 1" in checked.out


def test_texts_classes_and_tags_of_several_files_are_read_in_order(tmp_path: Path) -> None:
    for name, label in (("a", "good"), ("b", "bad")):
        (tmp_path / f"{name}.tsv").write_text(f"label\ttext\n{label}\tfirst {name}\n{label}\tsecond {name}\n")
        (tmp_path / f"{name}.conll").write_text(f"{name}\tX\n\n{name}{name}\tY\n")
        (tmp_path / f"{name}.txt").write_text(f"{name} one\n{name} two\n")
    classes = LabelData(train=["a.tsv", "b.tsv"], folder=tmp_path, hold_out=2)
    both = [*classes.texts("train"), *classes.texts("valid")]
    assert sorted(one.text for one in both) == ["first a", "first b", "second a", "second b"]
    tags = TagData(train=["a.conll", "b.conll"], folder=tmp_path, valid="a.conll")
    assert [one.forms for one in tags.sentences("train")] == [["a"], ["aa"], ["b"], ["bb"]]
    assert tags.describe("train") == "a.conll and 1 more upos"
    text = PlainText([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert list(text) == ["a one", "a two", "b one", "b two"] and text.name == "a.txt and 1 more"
    half = PlainText([tmp_path / "a.txt", tmp_path / "b.txt"], begin=0.5)
    assert list(half) == ["b one", "b two"]


def test_python_takes_the_same_list(memories: Path) -> None:
    found = weft.check([str(memories / "a.tsv"), memories / "b.tmx"], "translate")
    assert found.lines == {str(memories / "a.tsv"): 2, str(memories / "b.tmx"): 2}


def test_init_counts_what_is_in_files_before_too(tmp_path: Path) -> None:
    files = {
        "language": [[f"a line of words {n}\n" for n in (*range(12), *range(2 * part))] for part in (0, 1)],
        "tag": [[f"word{n}\tNOUN\n\n" for n in range(part, 7 + part)] for part in (0, 5)],
    }
    told = {"language": "14 of 14 are in the files before it", "tag": "2 of 7 are in the files before it"}
    for task, parts in files.items():
        named = [tmp_path / f"{task}{number}.txt" for number in range(2)]
        for name, lines in zip(named, parts, strict=True):
            name.write_text("".join(lines))
        out = tmp_path / f"{task}.yaml"
        found = run("init", task, *named, "--no-trial", "--output", out, code=0)
        assert f"{named[1]}: {told[task]}" in found.out, task


@pytest.mark.parametrize("every", [2, 7, 20])
def test_one_of_each_block_is_held_out_and_not_always_at_the_same_place(every: int) -> None:
    held = [[is_held_out(block * every + n, every) for n in range(every)] for block in range(50)]
    assert all(sum(block) == 1 for block in held)
    assert held[0][0] and len({tuple(block) for block in held}) > 1


def test_training_and_validation_are_parts_of_the_whole_text(tmp_path: Path) -> None:
    pairs = [(f"a {n}", f"b {n}") for n in range(100)]
    for side, name in enumerate(("xx", "yy")):
        (tmp_path / f"text.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    data = PairData(source="xx", target="yy", folder=tmp_path, train="text", hold_out=20)
    train, valid = ([tuple(pair[1:]) for pair in data.open(split)] for split in ("train", "valid"))
    assert len(valid) == 5 and len(train) == 95 and sorted([*train, *valid]) == sorted(pairs)
    assert data.has("valid") and data.describe("valid") == "one pair of 20 of text xx-yy"
    assert next(iter(data.open("valid"))).number == 1  # lines keep their numbers
    with pytest.raises(ConfigError, match="hold_out: cannot be combined with validation files"):
        PairData(source="xx", target="yy", folder=tmp_path, train="text", valid="text", hold_out=20)
    with pytest.raises(ConfigError, match="set hold_out: 20 to hold out"):
        PairData(source="xx", target="yy", folder=tmp_path, train="text")


def pictures(folder: Path) -> Any:
    for number in range(60):
        path = folder / "train" / "abc"[number % 3] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    data = ClassData(train="train", folder=folder, hold_out=5, split_seed=1)
    return lambda split: [int(one.path.stem) for one in data.find(split)]


def captions(folder: Path) -> Any:
    for number in range(60):
        (folder / f"{number}.png").write_bytes(b"")
    lines = [f"{number}.png\tpicture {number}\n" for number in range(60)]
    (folder / "train.tsv").write_text("image\tcaption\n" + "".join(lines))
    data = CaptionData(train="train.tsv", folder=folder, hold_out=5)
    return lambda split: [int(one.path.stem) for one in data.find(split)]


def recordings(folder: Path) -> Any:
    (folder / "train.tsv").write_text("".join(f"{number}.wav\tsaid {number}\n" for number in range(60)))
    data = SpeechData(folder=folder, hold_out=5)
    return lambda split: [int(one.file.stem) for one in data.listed(split)]


def prose(folder: Path) -> Any:
    (folder / "text.txt").write_text("".join(f"{number:03}\n" for number in range(60)))
    data = ProseData(train="text.txt", folder=folder, valid_share=0.2)
    return lambda split: [int(line) for line in data.open(split)]


@pytest.mark.parametrize("made", [pictures, captions, recordings, prose])
def test_nothing_that_is_held_out_is_trained_on(made: Callable[[Path], Any], tmp_path: Path) -> None:
    split = made(tmp_path)
    train, valid = split("train"), split("valid")
    assert len(valid) == 12 and sorted([*train, *valid]) == list(range(60))


def test_pairs_that_are_split_off_are_drawn_from_the_whole_text(tmp_path: Path) -> None:
    for side in ("xx", "yy"):
        (tmp_path / f"text.{side}").write_text("".join(f"{side} {n}\n" for n in range(230)))
    rest, held = hold_out(tmp_path / "text", "xx", "yy", 23)
    for side in ("xx", "yy"):
        kept, off = (
            (path.with_name(f"{path.name}.{side}")).read_text().splitlines() for path in (rest, held)
        )
        numbers = [int(line.split()[1]) for line in off]
        assert len(off) == 23 and sorted([*kept, *off]) == sorted(f"{side} {n}" for n in range(230))
        assert min(numbers) < 60 and max(numbers) > 170
    assert numbers == [
        int(line.split()[1]) for line in held.with_name("text.held.xx").read_text().splitlines()
    ]
