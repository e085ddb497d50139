"""Splits that keep groups together, and splits that follow time."""

import random
from collections import Counter
from pathlib import Path

import pytest

from weft.errors import ConfigError, DataError
from weft.tasks.classify.data import LabelData
from weft.tasks.labels.splits import by_group, by_time, time_of

CHANCE = random.Random(7)
GROUPS = [f"c{CHANCE.randrange(23)}" for _ in range(211)]
LABELS = [CHANCE.choice("aaab") for _ in GROUPS]


@pytest.mark.parametrize("folds", [0, 3, 5])
@pytest.mark.parametrize("seed", [0, 1, 13])
def test_no_group_is_in_two_parts(folds: int, seed: int) -> None:
    tested: Counter[int] = Counter()
    for fold in range(max(1, folds)):
        found = by_group(LABELS, GROUPS, folds=folds, fold=fold, hold_out=4, seed=seed)
        where: dict[str, set[str]] = {}
        for group, part in zip(GROUPS, found, strict=True):
            where.setdefault(group, set()).add(part)
        assert all(len(parts) == 1 for parts in where.values())
        assert set(found) == ({"train", "valid", "test"} if folds else {"train", "valid"})
        tested.update(number for number, part in enumerate(found) if part == "test")
    assert tested == (dict.fromkeys(range(len(LABELS)), 1) if folds else {})


def test_parts_are_about_equal_and_have_every_class() -> None:
    for fold in range(5):
        found = by_group(LABELS, GROUPS, folds=5, fold=fold, hold_out=0, seed=1)
        counts = Counter(label for label, part in zip(LABELS, found, strict=True) if part == "test")
        assert 30 <= counts.total() <= 55 and counts["b"] >= 5  # a fifth of 211; of 53


def test_groups_are_split_the_same_whatever_the_order_of_the_rows() -> None:
    order = list(range(len(LABELS)))
    random.Random(3).shuffle(order)
    one = by_group(LABELS, GROUPS, folds=5, fold=2, hold_out=4, seed=1)
    other = by_group(
        [LABELS[n] for n in order], [GROUPS[n] for n in order], folds=5, fold=2, hold_out=4, seed=1
    )
    assert [one[n] for n in order] == other


def test_by_time_training_is_older_than_validation_and_validation_older_than_the_test() -> None:
    times = [CHANCE.random() for _ in range(103)]
    for fold in range(1, 5):
        found = by_time(times, folds=5, fold=fold, hold_out=7)
        of = {part: [times[n] for n, one in enumerate(found) if one == part] for part in set(found)}
        assert max(of["train"]) < min(of["valid"]) and max(of["valid"]) < min(of["test"])
        assert len(of["test"]) in (20, 21)
        assert (fold == 4) == (None not in of)
        assert None not in of or min(of[None]) > max(of["test"])


def test_equal_times_keep_the_order_of_the_file() -> None:
    assert by_time([3.0] * 5, folds=0, fold=0, hold_out=3) == ["train", "train", "train", "valid", "valid"]


def test_times_are_dates_or_numbers() -> None:
    assert time_of("2026-03-01") - time_of("2026-02-28") == 86400
    assert time_of("2026-03-01T12:00") - time_of("2026-03-01 11:00:30") == 3570
    for wrong in ("", "yesterday", "nan", "31.12.2025"):
        with pytest.raises(ValueError):
            time_of(wrong)


def table(folder: Path, rows: list[str]) -> Path:
    path = folder / "x.tsv"
    path.write_text("text\tlabel\tcustomer\tday\n" + "".join(f"{row}\n" for row in rows))
    return path


def test_a_table_is_split_by_its_columns(tmp_path: Path) -> None:
    rows = [f"w{n}\t{'ab'[n % 2]}\tk{n // 4}\t2026-01-{29 - n:02}" for n in range(29)]
    train = str(table(tmp_path, rows))
    grouped = LabelData(train=train, group="customer", folds=4, fold=3, hold_out=3)
    of = {
        split: {one.cells["customer"] for one in grouped.texts(split)} for split in ("train", "valid", "test")
    }
    assert sum(map(len, of.values())) == len(set.union(*of.values())) == 8
    dated = LabelData(train=train, time="day", hold_out=10)
    assert [one.text for one in dated.texts("valid")] == ["w0", "w1", "w2"]  # the newest three of 29
    assert grouped.parts("valid") != LabelData(train=train, folds=4, fold=3, hold_out=3).parts("valid")


def test_wrong_columns_are_named(tmp_path: Path) -> None:
    train = str(table(tmp_path, ["a\tx\t\tnever"] * 3))
    for settings, said in (
        ({"group": "customer"}, r"x\.tsv:2: column 'customer' \(data\.group\) is empty"),
        (
            {"group": "shop"},
            r"x\.tsv:1: column 'shop' .* is missing; the file has text, label, customer, day",
        ),
        ({"time": "day"}, r"x\.tsv:2: expected a date .* got 'never'"),
    ):
        with pytest.raises(DataError, match=said):
            list(LabelData(train=train, hold_out=2, **settings).texts("train"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group": "a", "valid": "v"}, "group: needs hold_out or folds"),
        ({"group": "a", "time": "b", "hold_out": 2}, "group: cannot be combined"),
        ({"time": "b", "hold_out": 2, "split_seed": 1}, "split_seed: with time"),
        ({"time": "b", "hold_out": 2, "folds": 3}, "fold: expected at least 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LabelData(train="t", **settings)  # type: ignore[arg-type]
