"""F1, MCC and balanced accuracy of classes, sets and sequences: by matrices, and against scikit-learn."""

import random

import numpy as np
import pytest

from weft.errors import ConfigError, DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.f1 import F1, by_class
from weft.metrics.labels import BalancedAccuracy, Mcc
from weft.metrics.scored import ComparedOutputs

LABELS = ["a", "b", "c", "d", "e"]
AVERAGES = ("macro", "micro", "weighted")


def singles(count: int, seed: int, among: str = "abcd") -> list[str]:
    chance = random.Random(seed)
    return [chance.choice(among) for _ in range(count)]


def sets(count: int, seed: int) -> list[frozenset[str]]:
    chance = random.Random(seed)
    return [frozenset(name for name in LABELS[:-1] if chance.random() < 0.4) for _ in range(count)]


def matrix(items: list[frozenset[str]]) -> np.ndarray:
    return np.array([[name in item for name in LABELS] for item in items])


def test_sets_have_the_formula_on_matrices() -> None:
    ours, theirs = sets(53, 1), sets(53, 2)
    one, two = matrix(ours), matrix(theirs)
    hits, both = (one & two).sum(0), (one.sum(0) + two.sum(0))
    each = 2 * hits / np.maximum(both, 1)
    wanted = {
        "micro": 2 * hits.sum() / both.sum(),
        "macro": each.mean(),  # a label that nobody has counts 0
        "weighted": (each * two.sum(0)).sum() / two.sum(),
    }
    for average, value in wanted.items():
        found = F1(average=average, labels=LABELS)(ours, theirs)  # type: ignore[arg-type]
        assert found.value == pytest.approx(value, abs=1e-12)
    rows = by_class(ours, theirs, LABELS)
    assert [row.f1 for row in rows] == pytest.approx(list(each))
    assert [row.there for row in rows] == two.sum(0).tolist()
    assert [row.predicted for row in rows] == one.sum(0).tolist()
    assert Accuracy()(ours, theirs).value == pytest.approx((one == two).all(1).mean())


def test_mcc_is_the_correlation_of_indicator_matrices() -> None:
    ours, theirs = singles(61, 1, "abcde"), singles(61, 2)
    one, two = (
        np.array([[item == name for name in LABELS] for item in items], float) for items in (ours, theirs)
    )

    def covariance(x: np.ndarray, y: np.ndarray) -> float:
        return float(((x - x.mean(0)) * (y - y.mean(0))).sum())

    wanted = covariance(one, two) / (covariance(one, one) * covariance(two, two)) ** 0.5
    assert Mcc()(ours, theirs).value == pytest.approx(wanted, abs=1e-12)
    assert Mcc()(theirs, theirs).value == pytest.approx(1)
    assert Mcc()(["a"] * 61, theirs).value == 0


def test_balanced_accuracy_is_the_mean_recall() -> None:
    ours, theirs = singles(61, 1, "abcde"), singles(61, 2)
    recalls = [
        np.mean([a == b for a, b in zip(ours, theirs, strict=True) if b == name]) for name in set(theirs)
    ]
    assert BalancedAccuracy()(ours, theirs).value == pytest.approx(np.mean(recalls))


def test_all_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is not installed: pip install --group metrics-tests"
    )
    ours, theirs = singles(61, 1, "abcde"), singles(61, 2)
    assert Mcc()(ours, theirs).value == pytest.approx(metrics.matthews_corrcoef(theirs, ours), abs=1e-12)
    assert Accuracy()(ours, theirs).value == pytest.approx(metrics.accuracy_score(theirs, ours))
    found = BalancedAccuracy()(ours, theirs).value
    assert found == pytest.approx(np.mean([metrics.recall_score(theirs, ours, labels=[one], average="micro")
                                           for one in set(theirs)]))  # fmt: skip
    for average in AVERAGES:
        known = metrics.f1_score(theirs, ours, average=average, zero_division=0)
        assert F1(average=average)(ours, theirs).value == pytest.approx(known, abs=1e-12)  # type: ignore[arg-type]
        one, two = sets(53, 1), sets(53, 2)
        known = metrics.f1_score(matrix(two), matrix(one), average=average, zero_division=0)
        found = F1(average=average, labels=LABELS)(one, two).value  # type: ignore[arg-type]
        assert found == pytest.approx(known, abs=1e-12)


def test_sequences_are_compared_place_by_place() -> None:
    ours = [["A", "B", "A"], ["B"], ["", "C"]]
    theirs = [["A", "A", "A"], ["B"], ["C", "C"]]
    flat = [one for row in ours for one in row], [one for row in theirs for one in row]
    for metric in (F1(), F1(average="weighted"), Mcc(), BalancedAccuracy(), Accuracy()):
        assert metric(ours, theirs).value == pytest.approx(metric(*flat).value), metric
        assert metric(ours, theirs).size == 3


def test_a_class_that_only_a_baseline_answers_does_not_change_the_score() -> None:
    ours, theirs = singles(40, 1), singles(40, 2)
    alone = ComparedOutputs(ours, theirs, reads="labels").scored(F1())
    beside = ComparedOutputs(ours, theirs, baselines={"z": ["z"] * 40}, reads="labels").scored(F1())
    assert alone.value == beside.value and beside.baselines["z"] == 0
    low, high = beside.difference("z")[1:]
    assert 0 < low < beside.value < high < 1


def test_wrong_settings_and_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="average"):
        F1(average="mean")  # type: ignore[arg-type]
    for metric in (F1(), Mcc(), Accuracy()):  # Accuracy compared the letters of the two
        for ours, theirs in (("ab", ["a", "b"]), (["a", "b"], "ab"), ({"a", "b"}, "ab")):
            with pytest.raises(DataError, match="expected answers like their references"):
                metric([ours], [theirs])
    assert Accuracy()([""], [["a", "b"]]).value == 0  # no answer
