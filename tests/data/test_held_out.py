"""Held-out examples: one of each block, always the same, and none in both parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.data.held_out import is_held_out
from weft.data.split import hold_out
from weft.errors import ConfigError
from weft.tasks.images.data import ClassData
from weft.tasks.pictures.data import CaptionData
from weft.tasks.running_text.data import ProseData
from weft.tasks.seq2seq.sections import PairData
from weft.tasks.speech.data import SpeechData


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
