"""Classifiers on sets as they are published: tokenised already, the class first, in Latin-1."""

import random
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.data.labelled import LabelledText
from weft.errors import ConfigError
from weft.tasks.labels.splits import ENOUGH, held_out, small_validation
from weft.tasks.vocabulary import WordSettings

SMALL = ("training.max_updates=2", "training.validate_every=2", "training.tensorboard=false")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """As TREC's files are: NUM:dist far lake ?"""
    chance, kinds = random.Random(1), [("NUM:dist", "far"), ("NUM:count", "many"), ("HUM:ind", "do n't who")]
    for name, count in (("train", 97), ("test", 23)):
        rows = []
        for _ in range(count):
            (kind, verb), place = chance.choice(kinds), chance.choice(["café", "U.S.", "lake"])
            rows.append(f"{kind} {verb} {place} ?")
        (tmp_path / f"{name}.label").write_bytes("".join(f"{row}\n" for row in rows).encode("latin-1"))
    return tmp_path


def test_latin_1_and_a_class_in_front_are_named_and_read_by_an_option(questions: Path) -> None:
    train = questions / "train.label"
    coarse = ("--train", train, "--labels", "coarse")
    assert "latin-1" in refused(weft("init", "classify", *coarse, "-o", questions / "x.yaml"))
    lines = ("--train", train, "--encoding", "latin-1")
    assert "--labels" in refused(weft("init", "classify", *lines, "-o", questions / "x.yaml"))
    given = (*lines, "--labels", "coarse", "-o", questions / "mine.yaml")
    weft("init", "classify", *given, code=0)
    written = (questions / "mine.yaml").read_text("utf-8")
    assert "labels: coarse" in written and "encoding: latin-1" in written and "2 classes" in written
    changes = (f"data.folder={questions}", "data.vocabulary.kind=space", *SMALL)
    weft("train", questions / "mine.yaml", "--run", questions / "run", *changes, code=0)
    scored = weft("evaluate", questions / "run", "--full")
    assert scored.code == 0 and "HUM" in scored.out and "(space)" in scored.out, scored.err


def test_the_forms_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 a dull film\n1 do n't miss it\n" * 5)
    found = [(one.label, one.text) for one in LabelledText(tmp_path / "a.txt", labels="first")]
    assert found == [("0", "a dull film"), ("1", "do n't miss it")] * 5
    (tmp_path / "b.txt").write_text("NUM:dist How far ?\nalone\n")
    rows = list(LabelledText(tmp_path / "b.txt", labels="coarse").rows())
    assert rows[0].label == "NUM" and rows[1].kind == "unlabelled"  # type: ignore[union-attr]
    checked = weft("data", "check", tmp_path / "a.txt", "--task", "classify", "--labels", "first")
    assert checked.code == 0, checked.out
    with pytest.raises(ConfigError, match="encoding"):
        LabelledText(tmp_path / "a.txt", encoding="utf-16")


def test_words_between_spaces_stay_whole() -> None:
    vocabulary = WordSettings(kind="space").learn(["do n't go to the U.S. ?"])
    assert vocabulary.surface_pieces("n't U.S.") == ["n't", "u.s."]
    cut = WordSettings(kind="word").learn(["do n't go to the U.S. ?"])
    assert len(cut.encode("n't U.S.")) == 7


def test_a_validation_part_that_is_too_small_is_told(questions: Path) -> None:
    said = small_validation(173, 6747, cut=True)
    assert said and "±7.5 points" in said and "data.hold_out: 6 would keep 1,153" in said
    assert small_validation(ENOUGH, 10_000, cut=True) is None
    assert "hold_out" not in str(small_validation(173, 6747, cut=False))
    # the worst case is one half right: 1.96 sqrt(0.25 / n) is three points
    assert 1.96 * (0.25 / ENOUGH) ** 0.5 <= 0.03 < 1.96 * (0.25 / (ENOUGH - 1)) ** 0.5
    assert [held_out(n) for n in (900, 6920, 50_000)] == [5, 6, 10]
