"""Scores of a classifier of pictures or clips, next to the most frequent class."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from weft.metrics.accuracy import Accuracy
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import by_class, macro_f1, table
from weft.metrics.scored import scored
from weft.tasks.images.data import LabelledPictures
from weft.tasks.images.predictor import ImageClassifier
from weft.tasks.labels.base import ClassEvaluation
from weft.wording import plural


@dataclass(frozen=True, kw_only=True)
class ImageEvaluation(ClassEvaluation):
    """The classes that a model predicted, and their scores: accuracy and macro F1."""

    def details(self) -> list[str]:
        """Speed, and each class."""
        speed = f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} pictures/s, {self.seconds:.1f} s"
        return [speed, table(self.rows)]

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "seconds": self.seconds}


def evaluate(
    classifier: ImageClassifier, found: LabelledPictures, *, title: str, usual: str | None
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
