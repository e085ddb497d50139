"""The translation memory finds the TF-IDF nearest sentence, the first of ties; invalid input is rejected."""

import math
from collections import Counter

import numpy as np
import pytest

from weft.errors import DataError
from weft.metrics.baseline import blocks_of, copy, naive_errors, nearest, seasonal
from weft.metrics.scored import grouped


def dense(train, queries):
    """TF-IDF cosine with full matrices, as in textbooks (and scikit-learn's smooth idf)."""
    words = sorted({word for line in train for word in line.lower().split()})
    idf = {
        word: math.log((1 + len(train)) / (1 + sum(word in line.lower().split() for line in train))) + 1
        for word in words
    }

    def vector(line):
        counts = Counter(line.lower().split())
        return np.array([counts[word] * idf[word] for word in words])

    memory = np.stack([vector(line) / np.linalg.norm(vector(line)) for line in train])
    return [memory @ vector(line) for line in queries]


def test_nearest_equals_the_dense_computation(sentences):
    train, queries = sentences(61, 5, 11), sentences(37, 6, 11)
    found = nearest(train, [str(n) for n in range(61)], queries)
    for answer, similarity in zip(found, dense(train, queries), strict=True):
        assert similarity[int(answer)] == pytest.approx(similarity.max(), abs=1e-10)


def test_a_sentence_of_the_memory_gets_its_own_translation():
    train = ["Click the button .", "Press the key .", "Close the window ."]
    assert nearest(train, ["uno", "dos", "tres"], ["press the key.", "CLOSE the window!"]) == ["dos", "tres"]


def test_rare_words_weigh_more_than_frequent_ones():
    train = ["the house", "the king", "the queen", "a small zebra"]
    assert nearest(train, ["casa", "rey", "reina", "cebra"], ["the zebra"]) == ["cebra"]


def test_of_equals_the_first_is_taken_and_without_common_words_the_source():
    assert nearest(["a b", "b a"], ["first", "second"], ["b", "unknown", ""]) == ["first", "unknown", ""]


def test_scripts_without_spaces_are_compared_by_character():
    assert nearest(["我有一只猫", "他喜欢狗"], ["cat", "dog"], ["一只黑猫", "狗"]) == ["cat", "dog"]


def test_copy_gives_the_sources_in_a_list_of_its_own():
    sources = ["a", ""]
    assert copy(sources) == sources and copy(sources) is not sources


def test_an_unequal_or_empty_memory_is_refused_with_counts():
    with pytest.raises(DataError, match="got 2 sources and 1 target"):
        nearest(["a", "b"], ["x"], ["a"])
    with pytest.raises(DataError, match="training pair, got 0"):
        nearest([], [], ["a"])


def test_repeats() -> None:
    past = np.array([[1.0, 2, 3, 4]])
    assert seasonal(past, 2, 1).tolist() == [[4, 4]]
    assert seasonal(past, 5, 3).tolist() == [[2, 3, 4, 2, 3]]
    assert seasonal(past, 2, 9).tolist() == [[4, 4]]


def test_blocks_hold_neighbouring_origins_of_all_series_or_of_each() -> None:
    chosen = np.array([[0, 7], [0, 8], [0, 9], [1, 7], [1, 8], [1, 9]])
    assert blocks_of(chosen, 2, apart=False).numbers.tolist() == [0, 0, 1, 0, 0, 1]
    assert blocks_of(chosen, 2, apart=True).numbers.tolist() == [0, 0, 1, 2, 2, 3]
    ones = np.ones((6, 1))
    assert grouped(ones, blocks_of(chosen, 2, apart=False).numbers).tolist() == [[4], [2]]


def test_the_units_of_mase_and_rmsse_are_the_naive_errors_of_training() -> None:
    steps = naive_errors(np.array([3.0, 1.0, np.nan, 4.0, 7.0]), 1)
    assert steps == pytest.approx(((2 + 3) / 2, (4 + 9) / 2))
    for train, season in ((np.ones(5), 1), (np.ones(2), 7)):
        assert np.isnan(naive_errors(train, season)).all()
