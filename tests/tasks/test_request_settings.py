"""What a user may ask of a trained model: settings are options of the commands, and are checked."""

from pathlib import Path

import click
import pytest

from weft import rooms, tasks
from weft.commands import evaluate, inspect, predict
from weft.errors import ConfigError
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
