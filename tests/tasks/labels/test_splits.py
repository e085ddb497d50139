"""Folds and held-out parts: every example in one part, the same one always; by groups, and by time."""

import random
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from weft.errors import ConfigError, DataError
from weft.tasks.classify.data import LabelData
from weft.tasks.labels.splits import HeldOut, by_group, by_time, check_classes, part_of, parts, time_of
from weft.tasks.task import Split

CHANCE = random.Random(7)
GROUPS = [f"c{CHANCE.randrange(23)}" for _ in range(211)]
LABELS = [CHANCE.choice("aaab") for _ in GROUPS]


def split(labels: str, *, seed: int | None = 1, **how: int) -> list[Split]:
    return parts(labels, HeldOut(seed=seed, **how))


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_by_number_each_example_is_tested_in_one_fold(folds: int) -> None:
    for number in range(37):
        splits = [part_of(number, HeldOut(folds, fold, 3)) for fold in range(folds)]
        assert splits.count("test") == 1 and splits.index("test") == number % folds


def test_by_number_a_third_of_the_rest_is_held_out() -> None:
    for fold in range(5):
        counts = Counter(part_of(number, HeldOut(5, fold, 3)) for number in range(150))
        assert counts == {"test": 30, "valid": 40, "train": 80}
        # as many folds as examples of a block: they are counted without those of the fold
        counts = Counter(part_of(number, HeldOut(5, fold, 5)) for number in range(100))
        assert counts == {"test": 20, "valid": 16, "train": 64}
    assert {part_of(number, HeldOut()) for number in range(9)} == {"train"}


def test_without_a_seed_a_recipe_keeps_the_split_by_number() -> None:
    found = split("abcab" * 11, folds=5, fold=2, hold_out=4, seed=None)
    assert found == [part_of(number, HeldOut(5, 2, 4)) for number in range(55)]


def test_alternating_classes_reach_every_part_in_proportion() -> None:
    labels = "ab" * 50
    by_number = zip(labels, split(labels, hold_out=10, seed=None), strict=True)
    assert {label for label, part in by_number if part == "valid"} == {"a"}  # why there is a seed
    for seed in (0, 1, 2, 13):
        counts = Counter(zip(labels, split(labels, hold_out=10, seed=seed), strict=True))
        assert counts == {("a", "valid"): 5, ("b", "valid"): 5, ("a", "train"): 45, ("b", "train"): 45}


def test_shuffled_folds_hold_every_example_once_and_every_class_to_within_one() -> None:
    labels = "a" * 61 + "b" * 23 + "c" * 7 + "d"
    tested: Counter[int] = Counter()
    for fold in range(5):
        found = split(labels, folds=5, fold=fold, hold_out=3)
        assert set(found) == set(get_args(Split))
        tested.update(number for number, part in enumerate(found) if part == "test")
        sizes = Counter(label for label, part in zip(labels, found, strict=True) if part == "test")
        for label, count in Counter(labels).items():
            assert count // 5 <= sizes[label] <= -(-count // 5)
    assert tested == dict.fromkeys(range(len(labels)), 1)


def test_the_only_example_of_a_class_is_trained_on() -> None:
    for seed in range(17):
        for many in (2, 3):  # at one of them, b would be the next to be held out
            found = split("a" * many + "b", hold_out=2, seed=seed)
            assert found[many] == "train" and found.count("valid") == (many + 1) // 2


def test_a_shuffled_split_is_the_same_for_good() -> None:
    # computed from the definition with hashlib alone: blake2b(b"1:NUMBER") orders the numbers of a class
    found = split("a" * 30, hold_out=10)
    assert [number for number, part in enumerate(found) if part == "valid"] == [8, 12, 13]
    assert split("a" * 300, hold_out=10, seed=1) != split("a" * 300, hold_out=10, seed=2)


def test_a_part_of_one_class_is_refused_with_what_to_do() -> None:
    check_classes(["a", "b"], "x", cut=True, seed=None)
    with pytest.raises(DataError, match=r"x.tsv valid: .* 2 examples, all 'a'.*split_seed: 1"):
        check_classes(["a", "a"], "x.tsv valid", cut=True, seed=None)
    with pytest.raises(DataError, match="hold more examples out"):
        check_classes(["a"], "x", cut=True, seed=1)
    with pytest.raises(DataError, match="other classes"):
        check_classes(["a"], "x", cut=False, seed=None)


@pytest.mark.parametrize("folds", [0, 3, 5])
@pytest.mark.parametrize("seed", [0, 1, 13])
def test_no_group_is_in_two_parts(folds: int, seed: int) -> None:
    tested: Counter[int] = Counter()
    for fold in range(max(1, folds)):
        found = by_group(LABELS, GROUPS, HeldOut(folds, fold, 4, seed))
        where: dict[str, set[str]] = {}
        for group, part in zip(GROUPS, found, strict=True):
            where.setdefault(group, set()).add(part)
        assert all(len(parts) == 1 for parts in where.values())
        assert set(found) == ({"train", "valid", "test"} if folds else {"train", "valid"})
        tested.update(number for number, part in enumerate(found) if part == "test")
    assert tested == (dict.fromkeys(range(len(LABELS)), 1) if folds else {})


def test_parts_are_about_equal_and_have_every_class() -> None:
    for fold in range(5):
        found = by_group(LABELS, GROUPS, HeldOut(5, fold, 0, 1))
        counts = Counter(label for label, part in zip(LABELS, found, strict=True) if part == "test")
        assert 30 <= counts.total() <= 55 and counts["b"] >= 5  # a fifth of 211; of 53


def test_groups_are_split_the_same_whatever_the_order_of_the_rows() -> None:
    order = list(range(len(LABELS)))
    random.Random(3).shuffle(order)
    one = by_group(LABELS, GROUPS, HeldOut(5, 2, 4, 1))
    other = by_group([LABELS[n] for n in order], [GROUPS[n] for n in order], HeldOut(5, 2, 4, 1))
    assert [one[n] for n in order] == other


def test_by_time_training_is_older_than_validation_and_validation_older_than_the_test() -> None:
    times = [CHANCE.random() for _ in range(103)]
    for fold in range(1, 5):
        found = by_time(times, HeldOut(5, fold, 7))
        of = {part: [times[n] for n, one in enumerate(found) if one == part] for part in set(found)}
        assert max(of["train"]) < min(of["valid"]) and max(of["valid"]) < min(of["test"])
        assert len(of["test"]) in (20, 21)
        assert (fold == 4) == (None not in of)
        assert None not in of or min(of[None]) > max(of["test"])


def test_equal_times_keep_the_order_of_the_file() -> None:
    assert by_time([3.0] * 5, HeldOut(0, 0, 3)) == ["train", "train", "train", "valid", "valid"]


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
    missing = r"x\.tsv:1: column 'shop' .* is missing; the file has text, label, customer, day"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"group": "customer"}, r"x\.tsv:2: column 'customer' \(data\.group\) is empty"),
        ({"group": "shop"}, missing),
        ({"time": "day"}, r"x\.tsv:2: expected a date .* got 'never'"),
    ]
    for settings, said in wrong:
        with pytest.raises(DataError, match=said):
            list(LabelData(train=train, hold_out=2, **settings).texts("train"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group": "a", "valid": "v"}, "group: needs hold_out or folds"),
        ({"group": "a", "time": "b", "hold_out": 2}, "group: cannot be combined"),
        ({"time": "b", "hold_out": 2, "split_seed": 1}, "split_seed: with time"),
        ({"time": "b", "hold_out": 2, "folds": 3}, "fold: expected at least 1"),
        ({"folds": 1}, "folds: expected 0 for none or at least 2, got 1"),
        ({"folds": 10, "valid": "v", "test": "t"}, "folds: cannot be combined with a test file"),
        ({"hold_out": 10, "valid": "v"}, "hold_out: cannot be combined with validation files"),
        ({"split_seed": 1, "valid": "v"}, "split_seed: needs hold_out or folds"),
        ({"corpus": "x"}, "set exactly one of corpus"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LabelData(train="t", **settings)
