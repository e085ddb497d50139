"""Models of texts and series with scikit-learn's contract: `Pipeline`, `cross_val_score`, `clone`.

    from weft.sklearn import Classifier
    cross_val_score(Classifier(training={"max_epochs": 5}), texts, labels)

Each trains by `weft.fit`, in a temporary run unless `run` names one. Read next: fitting.py.
"""

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from weft.errors import DataError
from weft.fitting import fit
from weft.tasks.answer_list import missing
from weft.wording import kind_of


@dataclass(kw_only=True, eq=False, repr=False)
class _Fitted(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the estimators share: their parameters, and a run for each fit.

    Args:
        options: options of `weft init` for the task, such as {"kind": "word"}.
        data: settings of the recipe's section `data` to change.
        model: the same for `model`.
        training: the same for `training`, such as {"max_epochs": 5, "seed": 2}.
        run: the run directory, kept after the fit; None for a temporary one.
        progress: show the progress of the training.
    """

    options: Mapping[str, Any] | None = None
    data: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    training: Mapping[str, Any] | None = None
    run: str | Path | None = None
    progress: bool = False

    def _train(self, task: str, data: Any, **options: Any) -> Self:
        sections = {
            name: getattr(self, name) for name in ("data", "model", "training") if getattr(self, name)
        }
        said = {**options, **(self.options or {}), **sections, "progress": self.progress}
        if self.run is not None:
            self.model_ = fit(task, data, run=self.run, **said)
            return self
        folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.model_ = fit(task, data, run=Path(folder, "run"), **said)
        return self

    def set_params(self, **params: Any) -> Self:
        """Set parameters; training__max_epochs, or model__encoder__cell, is one setting of a section."""
        found: dict[str, Any] = {}
        for name, value in params.items():
            section, inside, key = name.partition("__")
            if inside and section in ("options", "data", "model", "training"):
                held = found.get(section, getattr(self, section)) or {}
                found[section] = {**held, key.replace("__", "."): value}
            else:
                found[name] = value
        return super().set_params(**found)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


class Classifier(ClassifierMixin, _Fitted):
    """A classifier of texts, `weft.fit("classify", ...)`, as an estimator.

    Attributes:
        classes_: [C] the classes, as they were given to `fit`, sorted.
        model_: the predictor, with `evaluate`, `inspect` and `plot`.

    Example:
        scores = cross_val_score(Classifier(training={"max_epochs": 5}), frame.text, frame.label)

        >>> Classifier(training={"max_epochs": 5})
        Classifier(training={'max_epochs': 5})
    """

    def fit(self, X: Sequence[str], y: Sequence[Any]) -> Self:
        """Train on texts [N] and their classes [N].

        Raises:
            DataError: texts and classes are not as many, or a text is no text.
        """
        texts, classes = _texts(X), _classes(y)
        if len(texts) != len(classes):
            raise DataError(f"expected as many classes as texts, got {len(classes)} and {len(texts)}")
        self.classes_, places, counts = np.unique(classes, return_inverse=True, return_counts=True)
        self.prior_ = counts / len(classes)
        labels = (str(self.classes_[place]) for place in places)
        return self._train("classify", [*zip(texts, labels, strict=True)])

    def predict_proba(self, X: Sequence[str]) -> np.ndarray:
        """Probabilities [N, C] of the classes, in the order of `classes_`; of an empty text, their shares."""
        check_is_fitted(self)
        found: Any = self.model_
        columns = [list(found.classes).index(str(one)) for one in self.classes_]
        decided = found.classify(_texts(X))
        return np.array([self.prior_ if one is None else one.probs[columns] for one in decided])

    def predict(self, X: Sequence[str]) -> np.ndarray:
        """The most probable class of each text [N]."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]  # type: ignore[no-any-return]


class Tagger(_Fitted):
    """A tagger of sentences, `weft.fit("tag", ...)`, as an estimator.

    Attributes:
        model_: the predictor.

    Example:
        tagger = Tagger().fit([["the", "dog"]], [["DET", "NOUN"]])
    """

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> Self:
        """Train on sentences, lists of words [N], and a tag for each word."""
        pairs = _pairs(X, y)
        return self._train("tag", [(list(words), list(tags)) for words, tags in pairs])

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of each sentence."""
        check_is_fitted(self)
        if any(isinstance(words, str) for words in X):
            raise DataError("expected sentences as lists of words, got a text; cut it into words")
        return [[tag for _, tag in one] for one in self.model_.predict([list(words) for words in X])]

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> float:
        """The share of words with the right tag."""
        right = [
            found == wanted
            for tags, truth in _pairs(self.predict(X), y)
            for found, wanted in _pairs(tags, truth)
        ]
        return float(np.mean(right))


@dataclass(kw_only=True, eq=False, repr=False)
class Forecaster(_Fitted):
    """A forecaster of series, `weft.fit("forecast", ...)`, as an estimator.

    Args:
        horizon: number of values to forecast.
        options, data, model, training, run, progress: see Classifier.

    Attributes:
        model_: the predictor.

    Example:
        Forecaster(horizon=12).fit(series).predict(series)  # the next 12 values
    """

    horizon: int = field(default=1, kw_only=False)

    def fit(self, X: Any, y: None = None) -> Self:
        """Train on series: numbers [T] or [T, N], or a table as `weft.fit` reads it."""
        return self._train("forecast", X, horizon=self.horizon)

    def predict(self, X: Any) -> Any:
        """The next values: [horizon] of numbers [T], a DataFrame of a table."""
        check_is_fitted(self)
        found = self.model_.predict(X)
        return found if hasattr(found, "columns") else np.asarray(found)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean absolute error of the forecast after X [T], where y [horizon] is what followed.

        Without y the last values of X are what followed, so that scikit-learn's TimeSeriesSplit can be used.
        """
        if y is None:
            X, y = X[: -self.horizon], X[-self.horizon :]
        return -float(np.abs(np.asarray(self.predict(X)) - np.asarray(y)).mean())


def _pairs(X: Sequence[Any], y: Sequence[Any]) -> "zip[tuple[Any, Any]]":
    """Sentences with their tags, or words with theirs."""
    if len(X) != len(y):
        raise DataError(f"expected tags for each sentence and word, got {len(y)} for {len(X)}")
    return zip(X, y, strict=True)


def _classes(given: Any) -> np.ndarray:
    """Classes [N], also of a column [N, 1]; each is there, and they can be sorted."""
    gone = next((number for number, one in enumerate(given) if missing(one)), None)
    if gone is not None:
        raise DataError(f"y[{gone}]: expected a class, got nothing; leave such texts out")
    for one in given:
        if isinstance(one, list | tuple | np.ndarray) and len(one) != 1:
            raise DataError(f"y: expected one class for each text, got {list(one)[:5]}")
    found = np.asarray(given).ravel()
    texts = [isinstance(one, str) for one in np.asarray(given, dtype=object).ravel()]
    if any(texts) and not all(texts):
        raise DataError("y: expected classes of one type, got texts and others; write them alike")
    return found


def _texts(given: Any) -> list[str]:
    """Texts [N], also of a column [N, 1]."""
    if isinstance(given, str):
        raise DataError("expected a list of texts, got one text")
    if hasattr(given, "columns"):
        if len(given.columns) != 1:
            raise DataError(f"expected one column of texts, got {len(given.columns)}; join them to one")
        given = given.to_numpy()
    texts = [one[0] if isinstance(one, np.ndarray | list | tuple) and len(one) == 1 else one for one in given]
    for one in texts:
        if not isinstance(one, str):
            raise DataError(f"expected texts, got {kind_of(one)}")
    return [str(one) for one in texts]
