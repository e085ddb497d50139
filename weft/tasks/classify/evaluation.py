"""How good a classifier is, beside its baselines: accuracy, F1 of each class, confusion, calibration.

Where a text may have several labels: micro and macro F1, and each label with its threshold.
Read next: ../../metrics/scored.py; ../../metrics/naive_bayes.py, a baseline.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from weft.metrics.accuracy import Accuracy
from weft.metrics.f1 import F1, ClassRow, by_class, confusion, table
from weft.metrics.labels import classes_of
from weft.metrics.metric import ItemKind
from weft.metrics.naive_bayes import NaiveBayes, grams
from weft.metrics.probabilities import Ece
from weft.metrics.scored import ComparedOutputs
from weft.tasks.classify.data import LabelledTexts, names_of
from weft.tasks.classify.predictor import LabelAnswer, TextClassifier
from weft.tasks.evaluation import Evaluation, speed, unanswered
from weft.tasks.labels.base import ClassEvaluation, probabilities_of
from weft.tasks.labels.calibration import ClassThreshold, confidence_of
from weft.tasks.predictor import Place, PredictedAnswers, predicted
from weft.text.vocabulary import Vocabulary
from weft.wording import plural


@dataclass(frozen=True, kw_only=True)
class LabelEvaluation(ClassEvaluation):
    """The scores of a classifier: accuracy, macro F1, calibration error."""

    def details(self) -> list[str]:
        """Speed, each class, confusions."""
        lines = [speed(len(self.outputs), "texts", self.seconds), table(self.rows)]
        if len(self.labels) <= 20:
            lines += [
                "confusion matrix (rows: true class, columns: predicted class):",
                _grid(self.labels, self.matrix),
            ]
        return lines


def classified(classifier: TextClassifier, texts: LabelledTexts, title: str) -> PredictedAnswers[LabelAnswer]:
    """The answers to these texts."""
    places = (Place(title, line) for line in texts.lines)
    return predicted(classifier, map(classifier.given, texts.texts, places), LabelAnswer).checked()


def evaluate(
    classifier: TextClassifier,
    given: LabelledTexts,
    *,
    title: str,
    train: LabelledTexts | None = None,
    threshold: ClassThreshold | None = None,
    own: bool = False,
) -> LabelEvaluation:
    """Classify and score; a text that the model cannot read counts as wrong, and is named."""
    found, wrong, seconds = classified(classifier, given, title)
    texts, labels = given[:2]
    outputs = ["" if one is None else one.decided.label for one in found]
    answered = np.array([one is not None for one in found])
    every = [None if one is None else one.decided.probs for one in found]  # [C] each
    names = classes_of(labels, outputs)
    lowest = {} if train is None else baselines(classifier.reader.vocabulary, texts, train)
    compared = ComparedOutputs(outputs, labels, baselines=lowest, reads="labels")
    sure = probabilities_of(classifier.classes, every, labels, train and train.labels)
    return LabelEvaluation(
        title=f"{title}, {plural(len(texts), 'text')}{unanswered(wrong)}",
        outputs=outputs,
        scores=[compared.scored(Accuracy()).counted("text"), compared.scored(F1()), sure.scored(Ece())],
        compared=[compared, sure],
        rows=by_class(outputs, labels),
        labels=names,
        matrix=confusion(outputs, labels, names),
        confidence=confidence_of(
            np.stack([one for one in every if one is not None]),
            np.array(outputs)[answered],
            np.array(labels)[answered],
            classifier.classes,
            classifier._temperature,
            threshold,
            own=own,
        ),
        unseen=sorted(set(labels) - set(classifier.reader.classes)),
        wrong=wrong,
        seconds=seconds,
    )


def _grid(labels: Sequence[str], matrix: np.ndarray) -> str:
    wide = max([len(label) for label in labels] + [len(f"{int(matrix.max()):,}")]) + 2
    head = " " * wide + "".join(f"{label:>{wide}}" for label in labels)
    rows = [
        f"{label:<{wide}}" + "".join(f"{count:>{wide},}" for count in row)
        for label, row in zip(labels, matrix, strict=True)
    ]
    return "\n".join([head, *rows])


@dataclass(frozen=True, kw_only=True)
class SeveralEvaluation(Evaluation):
    """The scores of a classifier that gives several labels."""

    rows: list[ClassRow]
    thresholds: dict[str, float]
    unseen: list[str]  # labels of these texts that training never saw
    seconds: float
    offers: ClassVar[tuple[ItemKind, ...]] = ("labels", "probabilities")

    def notes(self) -> list[str]:
        """Labels never seen, thresholds."""
        unseen = f"  labels that training never saw (never given): {', '.join(self.unseen)}"
        shown = ", ".join(f"{name} {value:.3g}" for name, value in self.thresholds.items())
        return [*([unseen] if self.unseen else []), f"  a label is given from this probability on: {shown}"]

    def details(self) -> list[str]:
        """Speed, each label."""
        return [speed(len(self.outputs), "texts", self.seconds), table(self.rows)]

    def facts(self) -> dict[str, Any]:
        """Labels and thresholds."""
        return {
            "labels": [row._asdict() for row in self.rows],
            "thresholds": self.thresholds,
            "seconds": self.seconds,
        }


def evaluate_several(
    classifier: TextClassifier, given: LabelledTexts, *, title: str, train: LabelledTexts | None = None
) -> SeveralEvaluation:
    """Label texts and score; one that the model cannot read gets no label, and is named."""
    found, wrong, seconds = classified(classifier, given, title)
    texts, labels = given[:2]
    reader = classifier.reader
    assert reader.separator is not None
    outputs = ["" if one is None else one.decided.label for one in found]

    def sets(lines: Sequence[str]) -> list[frozenset[str]]:
        return [frozenset(names_of(line, reader.separator)) for line in lines]

    lowest: dict[str, list[frozenset[str]]] = {}
    if train is not None:
        common = Counter(train.labels).most_common(1)[0][0]
        lowest = {f"most frequent labels ({common or 'none'})": sets([common]) * len(texts)}
    answers, true = sets(outputs), sets(labels)
    unseen = sorted({name for names in true for name in names} - set(reader.classes))
    every = [*reader.classes, *unseen]
    compared = ComparedOutputs(answers, true, baselines=lowest, reads="labels")
    return SeveralEvaluation(
        title=f"{title}, {plural(len(texts), 'text')}{unanswered(wrong)}",
        outputs=outputs,
        scores=[
            compared.scored(F1(average="micro", labels=every)),
            compared.scored(F1(average="macro", labels=every)),
            compared.scored(Accuracy()).counted("text").renamed("all labels right"),
        ],
        compared=[
            compared,
            probabilities_of(
                reader.classes,
                (None if one is None else one.decided.probs for one in found),
                true,
                None if train is None else sets(train.labels),
            ),
        ],
        rows=by_class(answers, true, every),
        thresholds=dict(zip(reader.classes, reader.thresholds, strict=True)),
        unseen=unseen,
        wrong=wrong,
        seconds=seconds,
    )


CHOSEN_ON = 2000
"""Number of training texts that choose a tokenisation; each is left out of the counts that judge it."""


def baselines(vocabulary: Vocabulary, texts: Sequence[str], train: LabelledTexts) -> dict[str, list[str]]:
    """The answer of each baseline for each text.

    Naive Bayes reads the tokens of the model's own vocabulary, words, or words between spaces: whichever
    is right most often on training texts that are left out of its counts.
    """
    most = Counter(train.labels).most_common(1)[0][0]
    found = {"most frequent class": [most] * len(texts)}
    known = _ways(vocabulary, train.texts)
    ways = {kind: (one.encode_batch(train.texts), one) for kind, one in known.items()}
    for longest, name in ((1, "tokens"), (2, "tokens and pairs")):
        best: tuple[float, str, NaiveBayes, Vocabulary] | None = None
        for kind, (rows, way) in ways.items():
            bags = [grams(row, longest) for row in rows]
            bayes = NaiveBayes(bags, train.labels)
            right = _left_out(bayes, bags, train.labels)
            if best is None or right > best[0]:
                best = right, kind, bayes, way
        assert best is not None
        _, kind, bayes, way = best
        answers = bayes.predict(grams(row, longest) for row in way.encode_batch(texts))
        found[f"naive Bayes, {name} ({kind})"] = answers
    return found


def _ways(own: Vocabulary, texts: Sequence[str]) -> dict[str, Vocabulary]:
    """Vocabularies by the way they cut a text, all with the letter case of the model."""
    found = {own.kind: own}
    for kind in ("word", "space"):
        whole = Vocabulary.train(texts, kind=kind, size=None, form=own.form, lowercase=own.lowercase)
        if kind not in found or len(whole) > len(own):
            found[kind] = whole
    return found


def _left_out(bayes: NaiveBayes, bags: Sequence[Sequence[object]], labels: Sequence[str]) -> float:
    """The share of training texts (or of a sample of them) that are right when left out of the counts."""
    count = min(CHOSEN_ON, len(bags))
    chosen = np.random.default_rng(1).permutation(len(bags))[:count]
    return sum(bayes.left_out(bags[n], labels[n]) == labels[n] for n in chosen) / count
