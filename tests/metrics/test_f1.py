"""F1, confusion, and the tagger's baseline, by manual calculation."""

import numpy as np
import pytest

from weft.errors import DataError
from weft.metrics.baseline import MostFrequentTag
from weft.metrics.f1 import F1, by_class, confusion, table
from weft.metrics.intervals import confidence
from weft.metrics.labels import classes_of
from weft.metrics.tags import TagAccuracy

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
