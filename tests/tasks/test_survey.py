"""What `weft init` plans fits the set: updates enough, and no warm-up that outlasts the training."""

from pathlib import Path

import pytest

from tests.commands.shell import weft
from weft.tasks.init import EPOCHS, UPDATES, planned, survey
from weft.train.schedules import CosineRestarts, LinearSchedule, unreached
from weft.train.settings import TrainingSettings


@pytest.mark.parametrize("batches", [0.2, 1, 4, 9, 37, 1e5])
def test_the_warm_up_is_a_tenth_at_most_and_large_sets_stay_as_usual(batches: float) -> None:
    plan = planned(batches, epochs=10, warmup=400)
    updates = max(1, batches) * plan.epochs
    assert 1 <= plan.warmup <= max(1, updates / 10)
    assert updates >= UPDATES or plan.epochs == EPOCHS
    if batches > 1e4:
        assert plan == (10, 400)


def test_a_text_without_spaces_is_counted_in_characters() -> None:
    chinese = survey([("我喜欢喝茶。",), ("看书",)])
    assert (chinese.words, chinese.longest, chinese.counted(chinese.mean)) == (8, 6, "4 characters")
    assert chinese.seen["茶"] == 1
    pairs = survey([("I like tea.", "我喜欢喝茶。"), ("Read.", "看书。")])
    assert pairs.counted(pairs.mean) == "4 words or characters"
    assert survey([("one",)]).counted(1) == "1 word" and survey([]).counted(0) == "0 words"
    ragged = survey([("a b", "c d")] * 3 + [("我喜欢",)] * 3)  # languages one after the other
    assert ragged.counted(1234) == "1,234 words or characters"


def test_init_counts_the_characters_of_chinese(tmp_path: Path) -> None:
    lines = ["我喜欢喝红茶", "他去公园看书", "天气很好"] * 20
    for name, text in (("zh", lines), ("ja", ["お茶が好きです", "本を読みます", "いい天気です"] * 20)):
        (tmp_path / f"train.{name}").write_text("\n".join(text) + "\n", "utf-8")
    arguments = "init", "translate", tmp_path / "train", "--source", "zh", "--target", "ja"
    assert weft(*arguments, "--output", tmp_path / "zh-ja.yaml").code == 0
    assert "of 6 characters on average\n# (the longest has 7)" in (tmp_path / "zh-ja.yaml").read_text("utf-8")


def test_a_warm_up_longer_than_the_training_is_said() -> None:
    settings = TrainingSettings(max_epochs=30, accumulate=2)
    assert settings.planned(17) == 30 * 9
    said = unreached(LinearSchedule(warmup=400), settings.planned(17))
    assert "270 planned updates, got 400" in said and "warmup: 27" in said
    assert unreached(LinearSchedule(warmup=270), 270) == unreached(LinearSchedule(warmup=400), 0) == ""
    assert "cycles: expected at most the 104 planned updates, got 400" in unreached(
        CosineRestarts(cycles=400), 104
    )
    assert unreached(CosineRestarts(cycles=4), 104) == unreached(CosineRestarts(cycles=4), 0) == ""
    assert TrainingSettings(max_updates=50, max_epochs=30).planned(17) == 50
    assert TrainingSettings(max_minutes=1, max_updates=0, max_epochs=0).planned(17) == 0
