"""Scores of a classifier of pictures or clips, next to the most frequent class."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.metrics.accuracy import Accuracy
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import ClassRow, by_class, macro_f1, table
from weft.metrics.metric import Score
from weft.metrics.scored import Scored, scored
from weft.tasks.evaluation import Evaluation
from weft.tasks.images.data import Classed
from weft.tasks.images.predictor import PictureClassifier
from weft.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ImageEvaluation(Evaluation):
    """The classes that a model predicted, and their scores."""

    title: str
    outputs: list[str]
    scores: list[Scored]  # accuracy, macro F1
    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] counts, true class by predicted class
    seconds: float
    shows: ClassVar[str] = "confusion matrix"

    @property
    def accuracy(self) -> Score:
        """The share of pictures with the right class."""
        return self.scores[0].score

    def details(self) -> list[str]:
        """Speed, and each class."""
        speed = f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} pictures/s, {self.seconds:.1f} s"
        return [speed, table(self.rows)]

    def facts(self) -> dict[str, Any]:
        """Classes and confusions."""
        return {
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
            "seconds": self.seconds,
        }

    def figure(self, name: str) -> "Figure":
        """The confusion matrix as a heat map with counts."""
        from weft.figures.confusion import confusion_map

        title = f"{name}\n{self.title}, accuracy {self.accuracy.value:.4f}"
        return confusion_map(self.matrix, self.labels, title=title)


def evaluate(
    classifier: PictureClassifier, found: Classed, *, title: str, usual: str | None
) -> ImageEvaluation:
    """Classify and score.

    Args:
        classifier: with the trained model.
        found: pictures and classes.
        title: names the data.
        usual: the most frequent class of the training data; None takes that of `found`.
    """
    begun = time.perf_counter()
    outputs = [classifier.names[n] for n in classifier.probs(found.pixels).argmax(1)]
    seconds = time.perf_counter() - begun
    names = classes(outputs, found.labels)
    most = usual or Counter(found.labels).most_common(1)[0][0]
    lowest = {"most frequent class": [most] * len(outputs)}
    accuracy = scored(Accuracy(), outputs, found.labels, baselines=lowest)
    return ImageEvaluation(
        title=f"{title}, {plural(len(outputs), 'picture')}",
        outputs=outputs,
        scores=[accuracy.counted("picture"), macro_f1(outputs, found.labels, baselines=lowest)],
        rows=by_class(outputs, found.labels),
        labels=names,
        matrix=confusion(outputs, found.labels, names),
        seconds=seconds,
    )
