"""Folds and held-out parts: every example in one part, the same one always."""

from collections import Counter
from typing import get_args

import pytest

from weft.errors import DataError
from weft.tasks.labels.splits import check_classes, part_of, parts
from weft.tasks.task import Split


def split(labels, *, folds: int = 0, fold: int = 0, hold_out: int = 0, seed: int | None = 1) -> list[Split]:
    return parts(labels, folds=folds, fold=fold, hold_out=hold_out, seed=seed)


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_by_number_each_example_is_tested_in_one_fold(folds: int) -> None:
    for number in range(37):
        splits = [part_of(number, folds=folds, fold=fold, hold_out=3) for fold in range(folds)]
        assert splits.count("test") == 1
        assert splits.index("test") == number % folds


def test_by_number_a_third_of_the_rest_is_held_out() -> None:
    for fold in range(5):
        counts = Counter(part_of(number, folds=5, fold=fold, hold_out=3) for number in range(150))
        assert counts == {"test": 30, "valid": 40, "train": 80}
        # as many folds as examples of a block: they are counted without those of the fold
        counts = Counter(part_of(number, folds=5, fold=fold, hold_out=5) for number in range(100))
        assert counts == {"test": 20, "valid": 16, "train": 64}
    assert {part_of(number, folds=0, fold=0, hold_out=0) for number in range(9)} == {"train"}


def test_without_a_seed_a_recipe_keeps_the_split_by_number() -> None:
    labels = "abcab" * 11
    assert split(labels, folds=5, fold=2, hold_out=4, seed=None) == [
        part_of(number, folds=5, fold=2, hold_out=4) for number in range(55)
    ]


def test_alternating_classes_reach_every_part_in_proportion() -> None:
    labels = "ab" * 50
    by_number = {label for label, part in zip(labels, split(labels, hold_out=10, seed=None), strict=True)
                 if part == "valid"}  # fmt: skip
    assert by_number == {"a"}  # why there is a seed
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
    assert [number for number, part in enumerate(split("a" * 30, hold_out=10)) if part == "valid"] == [
        8,
        12,
        13,
    ]
    assert split("a" * 300, hold_out=10, seed=1) != split("a" * 300, hold_out=10, seed=2)


def test_a_part_of_one_class_is_refused_with_what_to_do() -> None:
    check_classes(["a", "b"], "x", cut=True, seed=None)
    with pytest.raises(DataError, match=r"x.tsv valid: .* 2 examples, all 'a'.*split_seed: 1"):
        check_classes(["a", "a"], "x.tsv valid", cut=True, seed=None)
    with pytest.raises(DataError, match="hold more examples out"):
        check_classes(["a"], "x", cut=True, seed=1)
    with pytest.raises(DataError, match="other classes"):
        check_classes(["a"], "x", cut=False, seed=None)
