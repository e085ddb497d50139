"""The estimators of weft.sklearn in scikit-learn's own tools."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from tests.test_fitting import FRAME, SENTENCES, SERIES
from weft import load
from weft.errors import DataError, DataWarning
from weft.sklearn import Classifier, Forecaster, Tagger

SHORT = {"max_updates": 20, "tensorboard": False}


@pytest.fixture(scope="module")
def fitted() -> Any:
    return Classifier(training=SHORT).fit(FRAME.text, FRAME.label == "good")


def test_a_classifier_gives_its_own_classes_and_their_probabilities(fitted: Any) -> None:
    texts = FRAME.text[:6]
    assert fitted.classes_.tolist() == [False, True]
    assert fitted.predict(texts).dtype == bool
    prob = fitted.predict_proba(texts)
    assert prob.shape == (6, 2) and np.allclose(prob.sum(1), 1, atol=1e-5)
    assert (prob.argmax(1) == fitted.predict(texts)).all()
    assert fitted.predict(texts.to_numpy()[:, None]).tolist() == fitted.predict([*texts]).tolist()
    assert fitted.score(FRAME.text, FRAME.label == "good") > 0.5


def test_a_fitted_one_is_pickled_and_saved(fitted: Any, tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(FRAME.text[:3]).tolist() == fitted.predict(FRAME.text[:3]).tolist()
    fitted.model_.save(tmp_path / "saved")
    assert load(tmp_path / "saved").predict("a fine film") in ("True", "False")


def test_an_empty_text_has_the_shares_of_the_classes(fitted: Any) -> None:
    with pytest.warns(DataWarning, match="1 of 2 inputs has no answer"):
        prob = fitted.predict_proba(["", "a fine film"])
    assert prob[0].tolist() == [0.5, 0.5] and prob[1].tolist() != [0.5, 0.5]


def test_a_column_and_a_frame_of_one_are_the_same_texts(fitted: Any) -> None:
    assert fitted.predict(FRAME[["text"]][:3]).tolist() == fitted.predict(FRAME.text[:3]).tolist()
    with pytest.raises(DataError, match="expected a list of texts, got one text"):
        fitted.predict("a fine film")


def test_it_is_cloned_and_its_parameters_are_set(fitted: Any) -> None:
    again = clone(fitted)
    assert not hasattr(again, "model_") and again.get_params() == fitted.get_params()
    assert is_classifier(again)
    assert again.set_params(progress=True).progress


@pytest.mark.slow
def test_it_stands_in_pipelines_and_searches() -> None:
    lower = FunctionTransformer(lambda texts: [one.lower() for one in texts])
    whole = make_pipeline(lower, Classifier(training={**SHORT, "max_epochs": 20}))
    scores = cross_val_score(whole, FRAME.text, FRAME.label, cv=3)
    chance = cross_val_score(DummyClassifier(), FRAME.text, FRAME.label, cv=3)
    assert scores.mean() > chance.mean()
    rates = [{"max_updates": 1, "tensorboard": False}, SHORT]
    search = GridSearchCV(Classifier(), {"training": rates}, cv=2).fit(FRAME.text, FRAME.label)
    assert search.best_params_["training"] in rates


def test_texts_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="expected texts, got"):
        Classifier().fit([[1.0, 2.0]], ["a"])  # type: ignore[list-item]
    with pytest.raises(DataError, match="expected one column of texts, got 2; join them"):
        Classifier().fit(FRAME, FRAME.label)
    with pytest.raises(DataError, match="as many classes as texts"):
        Classifier().fit(["a"], ["a", "b"])


@pytest.mark.slow
def test_taggers_and_forecasters() -> None:
    words = [[word for word, _ in one] for one in SENTENCES]
    tags = [[tag for _, tag in one] for one in SENTENCES]
    tagger = Tagger(training=SHORT).fit(words, tags)
    assert [len(one) for one in tagger.predict(words[:2])] == [3, 2]
    assert 0 <= tagger.score(words, tags) <= 1
    values = SERIES.to_numpy()
    forecaster = Forecaster(horizon=4, training=SHORT).fit(values[:-4])
    assert forecaster.predict(values[:-4]).shape == (4,)
    assert forecaster.score(values[:-4], values[-4:]) < 0
    assert clone(forecaster).horizon == 4


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        (["a", None, "b"], r"y\[1\]: expected a class, got nothing"),
        (np.array([np.nan, 1.0, 2.0]), r"y\[0\]: expected a class, got nothing"),
        ([1, "a", 2], "y: expected classes of one type, got texts and others"),
        (["a", "b"], "expected as many classes as texts, got 2 and 3"),
        ([["a"], ["a", "b"], []], r"y: expected one class for each text, got \['a', 'b'\]"),
    ],
)
def test_classes_that_are_none_are_refused(classes: Any, why: str) -> None:
    with pytest.raises(DataError, match=why):
        Classifier().fit(["one", "two", "three"], classes)


def test_parameters_are_read_from_the_signature() -> None:
    assert Forecaster(7).get_params()["horizon"] == 7
    assert repr(Forecaster(7, training={"seed": 2})) == "Forecaster(horizon=7, training={'seed': 2})"
    assert {*Classifier().get_params()} == {"options", "data", "model", "training", "run", "progress"}


def test_one_setting_of_a_section_is_a_parameter_of_a_search() -> None:
    given = Classifier(training={"max_epochs": 2, "seed": 3})
    found = clone(given).set_params(training__max_epochs=5, model__encoder__cell="lstm", progress=True)
    assert found.training == {"max_epochs": 5, "seed": 3} and given.training["max_epochs"] == 2
    assert found.model == {"encoder.cell": "lstm"} and found.progress
    with pytest.raises(ValueError, match="Invalid parameter 'modell'"):
        found.set_params(modell__cell="gru")


def test_sentences_without_tags_are_refused() -> None:
    with pytest.raises(DataError, match="expected tags for each sentence and word, got 1 for 2"):
        Tagger().fit([["the", "dog"], ["cats"]], [["D", "N"]])


def test_without_y_the_last_values_are_what_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Forecaster, "predict", lambda self, X: np.full(2, X[-1]))
    assert Forecaster(2).score(np.array([0.0, 1.0, 5.0, 7.0])) == Forecaster(2).score([0, 1], [5, 7]) == -5.0


@pytest.mark.parametrize("kind", [Classifier, Tagger, Forecaster])
def test_scikit_learn_checks_what_fits_its_inputs(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no table of numbers is tried
        check_estimator(kind())


@pytest.mark.parametrize("one", [Classifier(), Tagger(), Forecaster(horizon=2)])
def test_nothing_is_predicted_before_a_fit(one: Any) -> None:
    with pytest.raises(NotFittedError):
        one.predict(["x"])
