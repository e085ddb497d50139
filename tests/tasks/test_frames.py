"""Answers, forecasts and scores in pandas: a column of a DataFrame in, a column or a DataFrame out."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.tasks.test_every_task import train
from weft import load
from weft.errors import ConfigError, DataError
from weft.tasks import ForecastPredictor, TextClassifier, WordTagger
from weft.tasks.answer_list import AnswerList, answer_list

GONE = [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan")]


def doubled(texts: Any) -> Any:
    return (2 * text for text in texts)


def test_answers_are_a_sequence_that_is_computed_when_it_is_read() -> None:
    read: list[str] = []
    found: AnswerList[str] = answer_list(
        (read.append(x) or x for x in "abc"), doubled, lambda one: one.upper()
    )
    assert read == []
    assert next(found) == "aa"
    assert read == ["a"]
    assert list(found) == list(found) == ["aa", "bb", "cc"]
    assert (next(found), next(found)) == ("bb", "cc")  # as of the generator of earlier versions
    with pytest.raises(StopIteration):
        next(found)
    assert (len(found), found[-1], found[1:], "bb" in found) == (3, "cc", ["bb", "cc"], True)
    assert np.asarray(found).tolist() == ["AA", "BB", "CC"]


def test_missing_inputs_have_no_answer_at_their_places() -> None:
    given = [*GONE, "a", None, "b", *GONE]
    found = answer_list(given, doubled, str)
    assert list(found) == [None] * 6 + ["aa", None, "bb"] + [None] * 6
    frame = pd.DataFrame({"text": given}).assign(found=found)
    assert frame.found.isna().tolist() == [True] * 6 + [False, True, False] + [True] * 6
    assert list(answer_list([], doubled, str)) == []
    assert list(answer_list(GONE, doubled, str)) == [None] * 6


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("one text", r"expected several texts, got one; give a list, or use predict\(text\)"),
        (
            pd.DataFrame({"body": ["a"]}),
            r"one column of texts, such as df\['text'\], got a DataFrame of body",
        ),
        (["a", 7], "text 1: expected a text, got int 7"),
    ],
)
def test_what_is_no_column_is_refused(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        list(answer_list(given, doubled, str))


def test_an_error_is_raised_however_the_answers_are_read() -> None:
    def fails(texts: Any) -> Any:
        yield next(texts)
        raise TypeError("of torch")  # which list() takes for a length that is not known

    found = answer_list(["a", "b"], fails, str)
    for read in (list, len, lambda one: one[1], np.asarray, lambda one: list(iter(one))):
        with pytest.raises(TypeError, match="of torch"):
            read(found)
    assert next(found) == "a"


def test_a_classifier_and_its_scores_in_pandas(tmp_path: Path) -> None:
    train("classify", tmp_path, "run")
    model = load(tmp_path / "run", TextClassifier)
    df = pd.DataFrame({"text": ["a fine film", None, "grim", np.nan]}, index=[7, 3, 5, 1])
    found = df.assign(label=model.classify(df.text), same=model.predict_all(df.text))
    assert found.label.dropna().tolist() == [model.predict("a fine film"), model.predict("grim")]
    assert found.label.isna().tolist() == [False, True, False, True]
    assert found.same.equals(found.label)
    scores = model.evaluate(split="valid")
    assert list(scores.columns[:5]) == ["value", "low", "high", "size", "higher_is_better"]
    accuracy = scores.loc["accuracy"]
    assert accuracy.low <= accuracy.value <= accuracy.high
    assert accuracy["signature"].startswith("unit:")
    labelled = pd.DataFrame({"text": ["a fine film", "grim"], "label": [*found.label.dropna()]})
    assert model.evaluate(labelled).loc["accuracy", "value"] == 1.0
    with pytest.raises(ConfigError, match=r"expected a model from weft\.load"):
        TextClassifier(model.model, model.reader, None).evaluate()  # type: ignore[arg-type]


def test_a_tagger_takes_texts_and_words(tmp_path: Path) -> None:
    train("tag", tmp_path, "run")
    model = load(tmp_path / "run", WordTagger)
    df = pd.DataFrame({"text": ["telo beding .", None]})
    found = df.assign(tags=model.tag(df.text))
    assert found.tags[0] == [tag for _, tag in model.predict("telo beding .")]
    assert found.tags[1] is None
    assert next(model.tag([["telo", "beding", "."]])).tags == found.tags[0]


def test_a_forecast_of_a_table_is_a_table_with_quantiles(tmp_path: Path) -> None:
    train("forecast", tmp_path, "run")
    model = load(tmp_path / "run", ForecastPredictor)
    (path,) = (tmp_path / "toy").glob("*.csv")
    df = pd.read_csv(path)
    found = model.predict(df)
    assert list(found.columns) == ["unique_id", "ds", "y", "q0.1", "q0.5", "q0.9"]
    names = list(df.columns[1:])
    assert found.unique_id.unique().tolist() == names
    times = pd.to_datetime(df[df.columns[0]])
    step = times.diff().iloc[-1]
    one = found[found.unique_id == names[0]]
    assert one.ds.tolist() == [times.iloc[-1] + step * n for n in range(1, len(one) + 1)]
    assert (found["q0.1"] <= found["q0.5"]).all()
    assert (found["q0.5"] <= found["q0.9"]).all()
    pd.testing.assert_frame_equal(model.predict(path), found)
    indexed = df.set_index(pd.DatetimeIndex(times)).drop(columns=df.columns[0])
    pd.testing.assert_frame_equal(model.predict(indexed), found)
    assert model.predict(df[names[0]].tolist()) == pytest.approx(one.y.tolist(), rel=1e-5)
    scores = model.evaluate()
    assert {"MSE", "MAE", "pinball"} <= set(scores.index)
    assert "last value repeated" in scores
    with pytest.raises(DataError):
        model.predict(df.head(3))
