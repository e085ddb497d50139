"""F1, MCC and balanced accuracy of classes, sets and sequences: by matrices, and against scikit-learn."""

import random

import numpy as np
import pytest

from weft.errors import ConfigError, DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.baseline import MostFrequentTag
from weft.metrics.f1 import F1, by_class, confusion, table
from weft.metrics.intervals import confidence
from weft.metrics.labels import BalancedAccuracy, Mcc, classes_of
from weft.metrics.scored import ComparedOutputs
from weft.metrics.tags import TagAccuracy

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


OURS = ["a", "b", "a", "c", "b", "a", "d"]
THEIRS = ["a", "b", "b", "c", "b", "c", "a"]


def test_the_matrix_counts_pairs() -> None:
    labels = classes_of(THEIRS, OURS)
    assert labels == ["b", "a", "c", "d"]
    want = np.zeros((4, 4), int)
    for ours, theirs in zip(OURS, THEIRS, strict=True):
        want[labels.index(theirs), labels.index(ours)] += 1
    np.testing.assert_array_equal(confusion(OURS, THEIRS, labels), want)
    with pytest.raises(DataError, match="got 1 and 2"):
        confusion(["a"], ["a", "b"], ["a", "b"])


def test_f1_is_the_harmonic_mean_and_macro_the_plain_one() -> None:
    rows = {row.label: row for row in by_class(OURS, THEIRS)}
    # a: 1 correct of 3 predicted and 2 true; b: 2 of 2 and 3; c: 1 of 1 and 2; d: predicted once, never true
    for label, precision, recall in [("a", 1 / 3, 1 / 2), ("b", 1, 2 / 3), ("c", 1, 1 / 2)]:
        assert rows[label].precision == pytest.approx(precision)
        assert rows[label].recall == pytest.approx(recall)
        assert rows[label].f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert (rows["d"].f1, rows["d"].there) == (0.0, 0)
    score = confidence(F1(), 2 * OURS, 2 * THEIRS)
    assert score.value == pytest.approx(np.mean([row.f1 for row in rows.values()]))
    assert score.low <= score.value <= score.high
    assert "d" in table(by_class(OURS, THEIRS))


def test_macro_f1_of_tags_is_that_of_words_and_draws_sentences() -> None:
    ours, theirs = list("abcabbac"), list("abcbbaaa")
    metric = F1().fitted(theirs, ours)
    words = metric.statistics(ours, theirs)
    answers, tags = ([one[:3], one[3:4], one[4:]] for one in (ours, theirs))
    sentences = metric.statistics(answers, tags)
    np.testing.assert_array_equal(sentences, [words[a:b].sum(0) for a, b in ((0, 3), (3, 4), (4, 8))])


def test_tag_accuracy_counts_words_not_sentences() -> None:
    score = TagAccuracy().score(["A B C D", "A", ""], ["A B C C", "B", "A"])
    assert score.value == pytest.approx(3 / 6)


def test_an_unknown_word_has_the_tag_of_its_longest_ending() -> None:
    floor = MostFrequentTag(
        [
            (["the", "walking", "talking", "king", "Rome"], ["DET", "VERB", "VERB", "NOUN", "PROPN"]),
            (["the", "king", "a"], ["DET", "NOUN", "X"]),
            (["a", "a"], ["DET", "DET"]),
        ]
    )
    assert floor.tag(["the", "king", "a"]) == ["DET", "NOUN", "DET"]
    assert floor.tag(["stalking", "ring", "Lome", "lome"]) == ["VERB", "VERB", "PROPN", "DET"]
    with pytest.raises(DataError, match="tagged word, got 0"):
        MostFrequentTag([])


def test_the_endings_of_frequent_words_say_nothing_of_unknown_ones() -> None:
    words = ["was"] * 4 + ["gas", "gas"]
    lowest = MostFrequentTag([(words, ["AUX"] * 4 + ["NOUN"] * 2)], rare=3)
    assert lowest.tag(["was", "gas", "bias"]) == ["AUX", "NOUN", "NOUN"]
    assert MostFrequentTag([(words, ["AUX"] * 4 + ["NOUN"] * 2)], rare=4).tag(["bias"]) == ["AUX"]
