"""Naive Bayes by manual calculation, and a classifier's confidence."""

from collections import Counter
from math import log

import numpy as np
import pytest

from weft.errors import DataError
from weft.metrics.calibration import calibration
from weft.metrics.naive_bayes import NaiveBayes, grams

BAGS = [["a", "a", "b"], ["b", "c"], ["c", "d", "d"], ["a"], ["d", "e"]]
LABELS = ["x", "x", "y", "x", "y"]


def test_logits_are_the_formula() -> None:
    bayes = NaiveBayes(BAGS, LABELS, alpha=0.5)
    items = sorted({item for bag in BAGS for item in bag})
    for bag in (["a", "d"], ["b", "b", "unseen"], []):
        for place, label in enumerate(bayes.classes):
            here = [set(each) for each, own in zip(BAGS, LABELS, strict=True) if own == label]
            counts = Counter(item for each in here for item in each)
            total = sum(counts.values()) + 0.5 * len(items)
            want = log(len(here) / len(BAGS))
            want += sum(log((counts[item] + 0.5) / total) for item in set(bag) & set(items))
            assert bayes.logits(bag)[place] == pytest.approx(want, rel=1e-12)


def test_it_refuses_nothing_and_unequal_counts() -> None:
    with pytest.raises(DataError, match="0 texts and 0 labels"):
        NaiveBayes([], [])
    with pytest.raises(DataError, match="1 text and 2 labels"):
        NaiveBayes([["a"]], ["x", "y"])


def test_grams_are_all_runs_of_neighbours() -> None:
    tokens = [3, 1, 4, 1]
    assert set(grams(tokens, 3)) == {(3,), (1,), (4,), (3, 1), (1, 4), (4, 1), (3, 1, 4), (1, 4, 1)}
    assert grams([], 2) == []


def test_calibration_is_the_mean_gap_of_the_bins() -> None:
    probs = np.array([0.95, 0.91, 0.55, 0.58, 1.0])
    right = np.array([True, False, True, True, True])
    found = calibration(probs, right)
    gaps = 2 / 5 * abs(1 - 0.565) + 3 / 5 * abs(2 / 3 - (0.95 + 0.91 + 1) / 3)
    assert found.error == pytest.approx(gaps)
    assert found.confidence == pytest.approx(probs.mean())
    assert sum(count for _, _, count in found.bins) == 5


def test_a_text_left_out_is_judged_as_by_a_model_fitted_without_it():
    chance = np.random.default_rng(5)
    bags = [[str(n) for n in chance.integers(13, size=chance.integers(1, 7))] for _ in range(41)]
    bags.append(["seen", "nowhere", "else", "3"])
    labels = [str(int(chance.integers(3))) for _ in bags]
    bayes = NaiveBayes(bags, labels)
    for at, (bag, label) in enumerate(zip(bags, labels, strict=True)):
        rest = NaiveBayes(bags[:at] + bags[at + 1 :], labels[:at] + labels[at + 1 :])
        assert bayes.left_out(bag, label) == rest.predict([bag])[0]
