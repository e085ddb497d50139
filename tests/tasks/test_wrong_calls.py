"""Inputs of the wrong type from Python are refused in one sentence, not answered and not raised raw."""

from typing import Any

import numpy as np
import pytest
import torch

import weft
from tests.shared import shared_run
from weft.errors import WeftError


@pytest.mark.parametrize("wrong", [["ripe"], [["ripe"]], ("ripe",), 3, None, b"ripe", {"ripe": 1}])
def test_a_word_is_a_text(wrong: Any) -> None:
    words = weft.load(shared_run("embeddings"))
    one = words.words[0]
    calls = [
        lambda: words.vector(wrong),
        lambda: words.nearest(wrong),
        lambda: words.similarity(one, wrong),
        lambda: words.analogy(one, one, wrong),
    ]
    for call in calls:
        with pytest.raises(WeftError, match="expected a word, got"):
            call()


@pytest.mark.parametrize("count", [0, -1, 1.5, "3"])
def test_a_count_of_words_is_positive(count: Any) -> None:
    words = weft.load(shared_run("embeddings"))
    for call in (words.nearest, words.predict):
        with pytest.raises(WeftError, match="count: expected a whole number from 1"):
            call(words.words[0], count)
    with pytest.raises(WeftError, match="expected a vector"):
        words.near(np.zeros(2), 3, [])


@pytest.mark.parametrize("wrong", [{"a": 1}, {"the", "dog"}, ["the", 3]])
def test_a_sentence_is_a_text_or_a_list_of_words(wrong: Any) -> None:
    tagger = weft.load(shared_run("tag"))
    with pytest.warns(UserWarning, match="expected a text, or a list of words"):
        assert tagger.tag([wrong]) == [None]


def test_a_tensor_is_no_sentence() -> None:
    tagger = weft.load(shared_run("tag"))
    with pytest.warns(UserWarning, match="expected a text, or a list of words"):
        assert tagger.predict(torch.ones(2)) == [None, None]


@pytest.mark.parametrize("wrong", ["the dog", {"the dog": 1}, None, 3])
def test_one_input_in_place_of_many_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected several inputs, got one"):
        weft.load(shared_run("tag")).tag(wrong)


SERIES = [True] * 60, [[1.0, 2.0], 3.0], 3, b"x", {"a": [1.0] * 60}, {1.0, 2.0}


@pytest.mark.parametrize("wrong", SERIES, ids=range(len(SERIES)))
def test_a_series_is_a_list_of_numbers(wrong: Any) -> None:
    forecaster = weft.load(shared_run("forecast"))
    if isinstance(wrong, list) and isinstance(wrong[0], list):  # two series
        with pytest.warns(UserWarning, match="have no answer"):
            assert set(forecaster.predict(wrong)) == {None}
        return
    with pytest.raises(WeftError, match="expected a list of numbers"):
        forecaster.predict(wrong)
