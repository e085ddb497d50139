"""Folds and held-out parts: every example in one part, the same one always."""

from collections import Counter

import pytest

from weft.tasks.labels.splits import part_of


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_each_example_is_tested_in_one_fold(folds: int) -> None:
    for number in range(37):
        parts = [part_of(number, folds=folds, fold=fold, hold_out=3) for fold in range(folds)]
        assert parts.count("test") == 1
        assert parts.index("test") == number % folds


def test_a_third_of_the_rest_is_held_out() -> None:
    for fold in range(5):
        counts = Counter(part_of(number, folds=5, fold=fold, hold_out=3) for number in range(150))
        assert counts == {"test": 30, "valid": 40, "train": 80}
    assert {part_of(number, folds=0, fold=0, hold_out=0) for number in range(9)} == {"train"}
