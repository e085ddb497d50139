"""How good a classifier with several labels a text is: micro and macro F1, and each label with its threshold.

Read next: several.py; ../../metrics/label_sets.py.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.metrics.accuracy import Accuracy
from weft.metrics.f1 import ClassRow, table
from weft.metrics.label_sets import by_label, label_f1
from weft.metrics.scored import Scored, scored
from weft.tasks.classify.data import names_of
from weft.tasks.classify.predictor import Classifier
from weft.tasks.evaluation import Evaluation, unanswered
from weft.tasks.predictor import Place, separated
from weft.wording import plural


@dataclass(frozen=True, kw_only=True)
class SeveralEvaluation(Evaluation):
    """The scores of a classifier that gives several labels."""

    title: str
    outputs: list[str]
    scores: list[Scored]  # micro F1, macro F1, the share of texts with exactly the right labels
    rows: list[ClassRow]
    thresholds: dict[str, float]
    unseen: list[str]  # labels of these texts that training never saw
    wrong: list[str]
    seconds: float

    def details(self) -> list[str]:
        """Labels never seen, speed, each label, thresholds."""
        lines = []
        if self.unseen:
            lines.append(f"  labels that training never saw (never given): {', '.join(self.unseen)}")
        shown = ", ".join(f"{name} {value:.3g}" for name, value in self.thresholds.items())
        lines.append(f"  a label is given from this probability on: {shown}")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} texts/s, {self.seconds:.1f} s")
        return [*lines, table(self.rows)]

    def facts(self) -> dict[str, Any]:
        """Labels and thresholds."""
        return {
            "labels": [row._asdict() for row in self.rows],
            "thresholds": self.thresholds,
            "unanswered": len(self.wrong),
            "seconds": self.seconds,
        }


def evaluate_several(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    lines: Sequence[int],
    title: str,
    train: tuple[Sequence[str], Sequence[str]] | None = None,
) -> SeveralEvaluation:
    """Label texts and score; one that the model cannot read gets no label, and is named.

    Args:
        classifier: with a trained model.
        texts, labels: and their true labels, joined by the separator.
        lines: of the texts in their file.
        title: which data.
        train: training texts and labels, for the baseline.
    """
    begun = time.perf_counter()
    decided, wrong = separated(classifier.attempts_at(texts), (Place(title, line) for line in lines))
    seconds = time.perf_counter() - begun
    reader = classifier.reader
    assert reader.separator is not None
    outputs = ["" if one is None else one.label for one in decided]
    lowest: dict[str, list[str]] = {}
    if train is not None:
        common = Counter(train[1]).most_common(1)[0][0]
        lowest = {f"always {common or 'no label'}": [common] * len(texts)}
    seen = {name for label in labels for name in names_of(label, reader.separator)}
    unseen = sorted(seen - set(reader.classes))
    every = [*reader.classes, *unseen]
    how: dict[str, Any] = {"separator": reader.separator, "labels": every}
    return SeveralEvaluation(
        title=f"{title}, {plural(len(texts), 'text')}{unanswered(wrong)}",
        outputs=outputs,
        scores=[
            label_f1(outputs, labels, mean="micro", baselines=lowest, **how),
            label_f1(outputs, labels, mean="macro", baselines=lowest, **how),
            scored(Accuracy(), outputs, labels, baselines=lowest).counted("text").renamed("all labels right"),
        ],
        rows=by_label(outputs, labels, **how),
        thresholds=dict(zip(reader.classes, reader.thresholds, strict=True)),
        unseen=unseen,
        wrong=wrong,
        seconds=seconds,
    )
