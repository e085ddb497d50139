"""How good a classifier is, beside its floors: accuracy, F1 of each class, confusion, calibration.

Read next: ../../metrics/naive_bayes.py, the floor.
"""

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.accuracy import Accuracy
from weft.metrics.bootstrap import confidence
from weft.metrics.calibration import Calibration, calibration
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import ClassRow, by_class, macro_f1, table
from weft.metrics.floor import beside
from weft.metrics.metric import Score
from weft.metrics.naive_bayes import NaiveBayes, grams
from weft.tasks.labels.classifier import Classifier


class Floor(NamedTuple):
    """What needs no training loop."""

    name: str
    accuracy: float


class LabelEvaluation(NamedTuple):
    """Classified texts and all that is known of them."""

    title: str
    outputs: list[str]
    accuracy: Score
    f1: Score
    floors: list[Floor]
    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] reference by answer
    calibration: Calibration
    unseen: list[str]  # classes of this text that training never saw
    seconds: float

    def text(self) -> str:
        """For a reader."""
        lines = [self.title, f"  {self.accuracy}", f"  {self.f1}"]
        for floor in self.floors:
            below = beside(self.accuracy.value, floor.accuracy)
            lines.append(f"  floor: {floor.name} {floor.accuracy:.4f}{below}")
        if self.unseen:
            lines.append(f"  classes that training never saw, always wrong: {', '.join(self.unseen)}")
        sure = self.calibration
        lines.append(
            f"  says {sure.confidence:.3f} on average, is right {self.accuracy.value:.3f}; "
            f"calibration error {sure.error:.4f} (10 bins)"
        )
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} texts/s, {self.seconds:.1f} s")
        lines.append(table(self.rows))
        if len(self.labels) <= 20:
            lines += [
                "confusion (rows: what it is, columns: what it was called):",
                _grid(self.labels, self.matrix),
            ]
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        everything = {
            "title": self.title,
            "scores": {"accuracy": self.accuracy._asdict(), "macro_f1": self.f1._asdict()},
            "floors": {floor.name: floor.accuracy for floor in self.floors},
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
            "calibration": self.calibration._asdict(),
            "seconds": self.seconds,
        }
        return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


def evaluate(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    title: str,
    train: tuple[Sequence[str], Sequence[str]] | None = None,
) -> LabelEvaluation:
    """Classify and score.

    Args:
        classifier: at work.
        texts, labels: what is what.
        title: which data.
        train: training texts and labels, for the floors.
    """
    begun = time.perf_counter()
    decided = list(classifier.classify(texts))
    seconds = time.perf_counter() - begun
    outputs = [one.label for one in decided]
    names = classes(outputs, labels)
    right = np.array([ours == theirs for ours, theirs in zip(outputs, labels, strict=True)])
    accuracy = confidence(Accuracy(), outputs, labels)
    return LabelEvaluation(
        title=f"{title}, {len(texts):,} texts",
        outputs=outputs,
        accuracy=accuracy._replace(signature=accuracy.signature.replace("unit:line", "unit:text")),
        f1=macro_f1(outputs, labels),
        floors=[] if train is None else _floors(classifier, texts, labels, train),
        rows=by_class(outputs, labels),
        labels=names,
        matrix=confusion(outputs, labels, names),
        calibration=calibration(np.array([one.prob for one in decided]), right),
        unseen=sorted(set(labels) - set(classifier.reader.classes)),
        seconds=seconds,
    )


def _floors(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    train: tuple[Sequence[str], Sequence[str]],
) -> list[Floor]:
    def share(answers: Sequence[str]) -> float:
        return sum(one == other for one, other in zip(answers, labels, strict=True)) / len(labels)

    most = Counter(train[1]).most_common(1)[0][0]
    found = [Floor("most frequent class", share([most] * len(labels)))]
    # the words of the model's own vocabulary: what naive Bayes is given is what the model could know
    rows = classifier.reader.vocabulary.encode_batch(train[0])
    asked = classifier.reader.vocabulary.encode_batch(texts)
    for longest, name in ((1, "naive Bayes, tokens"), (2, "naive Bayes, tokens and pairs")):
        bayes = NaiveBayes([grams(row, longest) for row in rows], train[1])
        found.append(Floor(name, share(bayes.predict([grams(row, longest) for row in asked]))))
    return found


def _grid(labels: Sequence[str], matrix: np.ndarray) -> str:
    wide = max([len(label) for label in labels] + [len(f"{int(matrix.max()):,}")]) + 2
    head = " " * wide + "".join(f"{label:>{wide}}" for label in labels)
    rows = [
        f"{label:<{wide}}" + "".join(f"{count:>{wide},}" for count in row)
        for label, row in zip(labels, matrix, strict=True)
    ]
    return "\n".join([head, *rows])
