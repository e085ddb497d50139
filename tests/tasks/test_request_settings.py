"""What a user may ask of a trained model is checked: settings, which are options, and inputs from Python."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import torch

import weft
from tests.shared import shared_run
from weft import rooms, tasks
from weft.commands import evaluate, inspect, predict
from weft.errors import ConfigError, WeftError
from weft.search.offered import Decoding
from weft.tasks.classify.task import ClassifierSettings
from weft.tasks.language.decoding import ProseSettings
from weft.tasks.masked.task import GapSettings
from weft.tasks.seq2seq.sections import GenerationSettings, TranslationSettings
from weft.tasks.task import PredictionSettings, RequestSettings, Task

KINDS = rooms.parts(tasks, Task)


@pytest.mark.parametrize("name", KINDS)
def test_every_setting_is_an_option_of_its_command(name: str) -> None:
    kind = KINDS[name]
    asked: list[tuple[type[RequestSettings], click.Command]] = [
        (kind.prediction_settings, predict.command),
        (kind.evaluation_settings, evaluate.command),
        (kind.inspection_settings, inspect.command),
    ]
    for settings, command in asked:
        assert set(settings.options()) <= {one.name for one in command.params}
        assert settings.of(None) == settings() and settings().given() == {}


def test_settings_of_another_task_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected TranslationSettings, got GapSettings"):
        TranslationSettings.of(GapSettings())


def test_what_a_command_sets_itself_is_no_option() -> None:
    assert PredictionSettings.options() == []
    assert GenerationSettings(batch_rows=3, progress=print).given() == {"batch_rows": 3}


def test_values_out_of_range_or_at_odds_are_refused() -> None:
    with pytest.raises(ConfigError, match="--nbest"):
        GapSettings(nbest=0)
    with pytest.raises(ConfigError, match="--pictures"):
        ClassifierSettings(plot=Path("x"), ensemble=[None])  # type: ignore[list-item]


def test_zero_is_a_value_and_not_the_absence_of_one() -> None:
    asked = GenerationSettings(search={"length_penalty": 0.0, "min_length": 0})
    found = Decoding(length_penalty=0.6, min_length=3).with_settings(asked.searched())
    assert (found.length_penalty, found.min_length) == (0.0, 0)
    assert ProseSettings(search={"seed": 0, "search": "sample"}).given() == {"seed": 0, "search": "sample"}


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
