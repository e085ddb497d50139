"""How good a classifier is, beside its baselines: accuracy, F1 of each class, confusion, calibration.

Read next: baselines.py; ../../metrics/scored.py.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.metrics.accuracy import Accuracy
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import ClassRow, by_class, macro_f1, table
from weft.metrics.metric import Score
from weft.metrics.scored import Scored, scored
from weft.tasks.classify.baselines import baselines
from weft.tasks.classify.predictor import Classifier
from weft.tasks.evaluation import Evaluation, unanswered
from weft.tasks.labels.calibration import Confidence, confidence_of
from weft.tasks.predictor import Place, separated
from weft.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class LabelEvaluation(Evaluation):
    """The scores of a classifier."""

    title: str
    outputs: list[str]
    scores: list[Scored]  # accuracy, macro F1
    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] reference by answer
    confidence: Confidence
    unseen: list[str]  # classes of these texts that training never saw
    wrong: list[str]
    seconds: float
    shows: ClassVar[str] = "confusion matrix"

    @property
    def accuracy(self) -> Score:
        """The share of texts with the right class."""
        return self.scores[0].score

    def details(self) -> list[str]:
        """Classes never seen, calibration, speed, each class, confusions."""
        lines = []
        if self.unseen:
            lines.append(f"  classes that training never saw (always wrong): {', '.join(self.unseen)}")
        lines += self.confidence.lines(self.accuracy.value)
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} texts/s, {self.seconds:.1f} s")
        lines.append(table(self.rows))
        if len(self.labels) <= 20:
            lines += [
                "confusion matrix (rows: true class, columns: predicted class):",
                _grid(self.labels, self.matrix),
            ]
        return lines

    def facts(self) -> dict[str, Any]:
        """Classes, confusions, calibration."""
        return {
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
            **self.confidence.facts(),
            "unanswered": len(self.wrong),
            "seconds": self.seconds,
        }

    def figure(self, name: str) -> "Figure":
        """Which class is taken for which: a heat map with counts."""
        from weft.figures.confusion import confusion_map

        title = f"{name}\n{self.title}, accuracy {self.accuracy.value:.4f}"
        return confusion_map(self.matrix, self.labels, title=title)


def evaluate(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    lines: Sequence[int],
    title: str,
    train: tuple[Sequence[str], Sequence[str]] | None = None,
) -> LabelEvaluation:
    """Classify and score; a text that the model cannot read counts as wrong, and is named.

    Args:
        classifier: with a trained model.
        texts, labels: and their true classes.
        lines: of the texts in their file.
        title: which data.
        train: training texts and labels, for the baselines.

    Raises:
        DataError, ShapeError: the model can read none of them.
    """
    begun = time.perf_counter()
    decided, wrong = separated(classifier.attempts_at(texts), (Place(title, line) for line in lines))
    seconds = time.perf_counter() - begun
    outputs = ["" if one is None else one.label for one in decided]
    answered = np.array([one is not None for one in decided])
    probs = np.stack([one.probs for one in decided if one is not None])  # [N, C]
    names = classes(outputs, labels)
    lowest = {} if train is None else baselines(classifier.reader.vocabulary, texts, train)
    accuracy = scored(Accuracy(), outputs, labels, baselines=lowest)
    return LabelEvaluation(
        title=f"{title}, {plural(len(texts), 'text')}{unanswered(wrong)}",
        outputs=outputs,
        scores=[accuracy.counted("text"), macro_f1(outputs, labels, baselines=lowest)],
        rows=by_class(outputs, labels),
        labels=names,
        matrix=confusion(outputs, labels, names),
        confidence=confidence_of(
            probs,
            np.array(outputs)[answered],
            np.array(labels)[answered],
            classifier.classes,
            classifier.temperature,
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
