"""Options that a command passes on to another call: all that were given, and no others."""

from typing import Any

import pytest

from weft.commands import predict, train
from weft.commands.options import as_words, given_one


def test_options_that_are_zero_are_passed_on() -> None:
    zeros: dict[str, Any] = {"length_penalty": 0.0, "coverage": 0.0, "no_repeat_ngram": 0, "seed": 0}
    words = as_words(predict.command, zeros)
    assert sorted(zip(words[::2], words[1::2], strict=True)) == [
        ("--coverage", "0.0"),
        ("--length-penalty", "0.0"),
        ("--no-repeat-ngram", "0"),
        ("--seed", "0"),
    ]


def test_options_that_were_not_given_are_left_out() -> None:
    given: dict[str, Any] = {"beam": None, "sample": False, "scores": True, "require": (), "prefix": ""}
    assert as_words(predict.command, given) == ["--scores", "--prefix", ""]
    assert as_words(train.command, {"plugins": ("one", "two")}) == ["--plugin", "one", "--plugin", "two"]


@pytest.mark.parametrize("value", [0, 0.0, "", True])
def test_a_given_option_may_be_zero_or_empty(value: Any) -> None:
    assert given_one(value)


@pytest.mark.parametrize("value", [None, False, ()])
def test_what_click_fills_in_was_not_given(value: Any) -> None:
    assert not given_one(value)
