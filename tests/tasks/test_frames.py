"""Answers, forecasts and scores in pandas: a column of a DataFrame in, a column or a DataFrame out."""

import gzip
import io
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.tasks.test_every_task import train
from weft import load
from weft.errors import ConfigError, DataError, DataWarning
from weft.nn import LinearForecaster
from weft.tasks import ForecastPredictor, TextClassifier, WordTagger
from weft.tasks.forecast.data import SeriesData
from weft.tasks.forecast.model import ForecastModel
from weft.tasks.forecast.predictor import Horizon
from weft.tasks.predictor import Answer, Place, Predictor, answered, as_text

GONE = [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan")]


class Doubled(Answer):
    def __init__(self, given: str) -> None:
        self.found = 2 * given

    def text(self) -> str:
        return self.found

    def json(self) -> Any:
        return {"text": self.found, "counts": {"letters": len(self.found)}}


class Doubler(Predictor[str]):
    """Doubles texts; refuses what is no text or is empty."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def parse(self, raw: Any, place: Place) -> str:
        text = as_text(raw, place, self.columns)
        self.read.append(text)
        if not text:
            raise place.refuse("the text is empty")
        return text

    def answers(self, inputs: Any) -> Any:
        return map(Doubled, inputs)

    def value(self, answer: Any) -> str:
        return str(answer.text())


def test_answers_are_a_sequence_that_is_computed_when_it_is_read() -> None:
    model = Doubler()
    found = model.listed(iter("abc"), model.value, lambda one: one.upper(), window=1)
    assert model.read == []
    assert next(found) == "aa"
    assert model.read == ["a"]
    assert list(found) == list(found) == ["aa", "bb", "cc"]
    assert (next(found), next(found)) == ("bb", "cc")
    with pytest.raises(StopIteration):
        next(found)
    assert (len(found), found[-1], found[1:], "bb" in found) == (3, "cc", ["bb", "cc"], True)
    assert np.asarray(found).tolist() == ["AA", "BB", "CC"]


def test_missing_inputs_have_no_answer_at_their_places() -> None:
    given = [*GONE, "a", None, "b", *GONE]
    found = Doubler().predict(given)
    assert list(found) == [None] * 6 + ["aa", None, "bb"] + [None] * 6
    frame = pd.DataFrame({"text": given}).assign(found=found)
    assert frame.found.isna().tolist() == [True] * 6 + [False, True, False] + [True] * 6
    for none in ([], (), pd.Series(dtype=object), pd.DataFrame(), pd.DataFrame({"text": []}), iter(())):
        assert list(Doubler().predict(none)) == []
    assert list(Doubler().predict(GONE)) == [None] * 6 and not found.wrong


def test_an_input_that_cannot_be_answered_is_none_and_says_why() -> None:
    for one, words in (
        ("", "input: the text is empty"),
        (7, "expected a text, got a number"),
        (None, "nothing"),
    ):
        with pytest.raises(DataError, match=words):
            Doubler().predict(one)
    found = Doubler().predict(["a", "", 7, None])
    with pytest.warns(
        DataWarning, match=r"2 of 3 inputs have no answer: inputs\[1\]: the text is empty; inputs\[2\]"
    ):
        assert list(found) == ["aa", None, None, None]
    assert found.wrong == {1: "inputs[1]: the text is empty", 2: "inputs[2]: expected a text, got a number"}


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        (b"\na\n", ["", "aa"]),
        (b"\xef\xbb\xbfa\nb", ["aa", "bb"]),
        (b"a\r\n\r\nb\r\n", ["aa", "", "bb"]),
        (b"a\rb\r", ["aa", "bb"]),
        (b"a\tb\n7.5\n", ["a\tba\tb", "7.57.5"]),
        (b"\xff\xfea\x00\n\x00", ["aa"]),
        (b"x" * 10_000, ["x" * 20_000]),
        (gzip.compress(b"a\nb\n", mtime=0), ["aa", "bb"]),
        (b"", "empty; give"),
        (b"\0\n", "a NUL byte, so this is not UTF-8 text"),
    ],
)
def test_a_file_and_a_stream_are_read_alike(content: bytes, answers: Any, tmp_path: Path) -> None:
    (path := tmp_path / "in.txt").write_bytes(content)
    for source in (path, io.BytesIO(content)):
        model = Doubler()
        if isinstance(answers, str):
            with pytest.raises(DataError, match=answers):
                list(answered(model, model.each_input(source)))
        else:
            assert [one.text() for one in answered(model, model.each_input(source))] == answers


def test_one_and_many_inputs_of_pandas() -> None:
    model = Doubler()
    df = pd.DataFrame({"subject": ["a", "b"], "body": ["c", None]}, index=[7, 3])
    assert list(model.predict(df.subject)) == list(model.predict(df[["subject"]])) == ["aa", "bb"]
    assert list(model.predict(df.subject.to_numpy())) == ["aa", "bb"]
    assert list(model.predict(df[["subject"]].to_numpy())) == ["aa", "bb"]
    with pytest.raises(
        DataError, match=r"expected one column, got a table of subject, body; .* df\['text'\]"
    ):
        model.predict(df)
    model.columns = ("subject", "body")
    for wrong, hint in (
        (df[["body"]], "rename them"),
        (df.rename(columns={"body": "bodi"}), "rename 'bodi' to 'body'"),
        (pd.concat([df, df], axis=1), "rename one"),
    ):
        with pytest.raises(DataError, match=f"expected the columns subject, body, each once, got .*; {hint}"):
            model.predict(wrong)
    with pytest.raises(DataError, match="expected the column 'body'"):
        model.predict(df[["subject"]].iloc[0])
    with pytest.raises(DataError, match="expected a text, got ndarray"):
        model.predict(np.array("a"))
    assert list(model.predict(df)) == ["a ca c", "bb"]
    assert model.predict({"subject": "a", "body": "c", "id": 7}) == model.predict(df.iloc[0]) == "a ca c"
    with pytest.raises(DataError, match="expected the column 'body', got subject"):
        model.predict({"subject": "a"})
    found = model.predict(df).to_frame()
    assert found.index.tolist() == [7, 3] and found.columns.tolist() == ["text", "counts.letters"]
    assert found["counts.letters"].tolist() == [6, 2]


def test_an_error_is_raised_however_the_answers_are_read() -> None:
    class Broken(Doubler):
        def answers(self, inputs: Any) -> Any:
            if "b" in inputs:
                raise TypeError("of torch")  # which list() takes for a length that is not known
            return map(Doubled, inputs)

    found = Broken().listed(["a", "b"], lambda one: one.text(), window=1)
    for read in (list, len, lambda one: one[1], np.asarray, lambda one: list(iter(one))):
        with pytest.raises(TypeError, match="of torch"):
            read(found)
    assert next(found) == "aa"


def test_a_classifier_and_its_scores_in_pandas(tmp_path: Path) -> None:
    train("classify", tmp_path, "run")
    model = load(tmp_path / "run", TextClassifier)
    df = pd.DataFrame({"text": ["a fine film", None, "grim", np.nan]}, index=[7, 3, 5, 1])
    assert (
        repr(model) == f"<TextClassifier; {tmp_path / 'run'}, classify: texts of train.txt; labels bad, good>"
    )
    assert {"predict", "evaluate", "classify", "explain"} <= {*dir(model)}
    assert not {"parse", "attempts", "window", "formatted", "unanswered"} & {*dir(model)}
    found = df.assign(label=model.classify(df.text), same=model.predict(df.text))
    assert found.label.dropna().tolist() == [model.predict("a fine film"), model.predict("grim")]
    assert found.label.isna().tolist() == [False, True, False, True]
    assert found.same.equals(found.label)
    scores = model.evaluate(split="valid")
    assert list(scores.columns[:5]) == ["value", "low", "high", "size", "higher_is_better"]
    title, first = str(scores).splitlines()[:2]
    assert "valid" in title and re.fullmatch(r"  accuracy [\d.]+ \[.*\] \(unit:.*\)", first)
    assert "baseline: most frequent class" in str(scores) and "..." not in str(scores)
    assert str(pickle.loads(pickle.dumps(scores))) == str(scores)
    assert str(scores[["value"]]).split()[:2] == ["value", "score"]
    accuracy = scores.loc["accuracy"]
    assert accuracy.low <= accuracy.value <= accuracy.high
    assert accuracy["signature"].startswith("unit:")
    labelled = pd.DataFrame({"text": ["a fine film", "grim"], "label": [*found.label.dropna()]})
    with pytest.warns(DataWarning, match="1 of 2 inputs occurred in training"):
        assert model.evaluate(labelled).loc["accuracy", "value"] == 1.0
    with pytest.warns(DataWarning, match=r"no class of this data \(Bad\) occurred in training"):
        model.evaluate([("a fine film", "Bad")] * 2)
    with pytest.raises(ConfigError, match=r"expected a model from weft\.load"):
        TextClassifier(model.model, model.reader, None).evaluate()  # type: ignore[arg-type]


def test_a_tagger_takes_texts_and_words(tmp_path: Path) -> None:
    train("tag", tmp_path, "run")
    model = load(tmp_path / "run", WordTagger)
    df = pd.DataFrame({"text": [".", None]})
    found = df.assign(tags=model.tag(df.text))
    assert found.tags[0] == [tag for _, tag in model.predict(".")]
    assert found.tags[1] is None
    assert next(model.tag([["."]])).tags == found.tags[0]
    assert model.predict((".",)) == model.predict(df.text)[0] == model.predict([["."]])[0]


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
    pd.testing.assert_frame_equal(model.predict(), found)  # which ends where this table does
    indexed = df.set_index(pd.DatetimeIndex(times)).drop(columns=df.columns[0])
    pd.testing.assert_frame_equal(model.predict(indexed), found)
    values = df[names[0]].tolist()
    assert model.predict(values) == pytest.approx(one.y.tolist(), rel=1e-5)
    assert model.predict(np.array(values)[:, None]) == model.predict(values)
    many = model.predict([values, None, values[:3], df])
    with pytest.warns(DataWarning, match=r"1 of 3 inputs has no answer: inputs\[2\]: .*expected at least"):
        assert many[0] == model.predict(values) and many[1:3] == [None, None]
    pd.testing.assert_frame_equal(many[3], found)
    scores = model.evaluate()
    assert {"MSE", "MAE", "pinball"} <= set(scores.index)
    assert "last value repeated" in scores
    with pytest.raises(DataError):
        model.predict(df.head(3))


def test_an_array_of_columns_is_the_table_that_fit_makes_of_it(tmp_path: Path) -> None:
    values = np.arange(80.0).reshape(40, 2) % 7
    table = pd.DataFrame(values, columns=["y1", "y2"])
    table.to_csv(tmp_path / "train.csv", index=False)
    data = SeriesData(folder=tmp_path, file="train.csv", lookback=4, horizon=2)
    network = ForecastModel(forecaster=LinearForecaster).build(4, 2, 0, 2).eval()
    about = {"names": ["y1", "y2"], "mean": [0.0, 0.0], "std": [1.0, 1.0]}
    model = ForecastPredictor(network, data, about, Horizon())
    found = model.predict(values)
    assert found.unique_id.tolist() == ["y1", "y1", "y2", "y2"]
    pd.testing.assert_frame_equal(found, model.predict(table))
    pd.testing.assert_frame_equal(found, model.predict())
    assert len(model.predict(values.T)) == 2  # two series of 40 values
    timed = table.set_axis([1.0, 2.0], axis=1).assign(ds=pd.date_range("2024-02-27", periods=40))
    with pytest.warns(DataWarning, match=r"new since the training, so scaled by their own rows: 1\.0, 2\.0"):
        model.predict(timed.melt("ds", var_name="unique_id", value_name="y"))


def test_without_data_at_its_place_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    network = ForecastModel(forecaster=LinearForecaster).build(4, 2, 0, 1).eval()
    about = {"names": ["y"], "mean": [0.0], "std": [1.0]}
    data = SeriesData(folder=tmp_path, file="gone.csv", lookback=4, horizon=2)
    with pytest.raises(DataError, match=r"gone\.csv"):
        ForecastPredictor(network, data, about, Horizon()).predict()
