"""Word weights and alignment text, by hand."""

import numpy as np
import pytest

from weft.errors import ShapeError
from weft.figures.records import merge, pharaoh


def test_source_pieces_add_up_and_target_pieces_are_averaged():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.0, 0.0, 1.0, 0.0]])
    words = merge(weights, [[0, 1], [2], [3]], [[0, 1], [2]])
    np.testing.assert_allclose(words, [[0.45, 0.2, 0.35], [0, 1, 0]], atol=1e-10)


def test_rows_keep_their_sum_when_all_pieces_are_in_words():
    weights = np.random.default_rng(0).dirichlet(np.ones(7), 5)
    words = merge(weights, [[0], [1, 2, 3], [4, 5], [6]], [[0, 1, 2], [3], [4]])
    np.testing.assert_allclose(words.sum(1), 1, atol=1e-10)


def test_pieces_outside_words_drop_out():
    weights = np.array([[0.7, 0.3], [0.2, 0.8]])  # the second of each is the end symbol
    np.testing.assert_allclose(merge(weights, [[0]], [[0]]), [[0.7]], atol=1e-10)


def test_one_word_of_one_piece_stays():
    assert merge(np.array([[1.0]]), [[0]], [[0]]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ([[0, 2]], [[0]], r"source word 0: .*from 0 to 1, got \[0, 2\]"),
        ([[0]], [[0], []], r"target word 1: .*got \[\]"),
        ([[-1]], [[0]], r"source word 0: .*got \[-1\]"),
    ],
)
def test_words_that_do_not_fit_are_refused(source, target, said):
    with pytest.raises(ShapeError, match=said):
        merge(np.ones((3, 2)), source, target)


def test_each_target_word_names_the_source_word_it_looks_at_most():
    weights = np.array([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1], [0.0, 0.2, 0.8], [0.4, 0.4, 0.2]])
    assert pharaoh(weights) == "1-0 0-1 2-2 0-3"


def test_an_empty_side_gives_an_empty_line():
    assert pharaoh(np.zeros((0, 3))) == "" == pharaoh(np.zeros((2, 0)))
