"""Options that a command passes on to another call: all that were given, and no others."""

from typing import Any

import click
import pytest

from tests.commands.shell import commands, refused, weft
from weft.cli import group
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


def test_an_option_of_one_value_is_refused_twice_in_every_command() -> None:
    seen = 0
    for names, command in commands(group):
        for option in command.params:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                name = option.opts[0]
                said = refused(weft(*names, name, "1", f"{name}=2" if name.startswith("--") else name, "3"))
                assert f"{name}: expected one value, got 2; leave the others out" in said
                seen += 1
    assert seen > 150


def test_an_option_of_several_values_takes_all() -> None:
    assert "--plugin" not in refused(weft("predict", "none", "--plugin", "json", "--plugin", "csv"))
    assert weft("--help").code == 0


def test_the_help_of_predict_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(weft("predict", "--help").lines) <= 40
