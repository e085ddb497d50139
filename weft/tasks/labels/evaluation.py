"""What the evaluations of classes and of tags share: the scores of each class, and which is taken for which.

Read next: ../../metrics/f1.py, the scores of each class; calibration.py, how sure answers are.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.metrics.f1 import ClassRow
from weft.metrics.metric import MetricScore
from weft.metrics.scored import ScoreWithBaselines
from weft.tasks.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class ClassEvaluation(Evaluation):
    """Scores of answers of which each is one class."""

    title: str
    outputs: list[str]
    scores: list[ScoreWithBaselines]  # the first one is the accuracy
    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] reference by answer
    seconds: float
    shows: ClassVar[str] = "confusion matrix"

    @property
    def accuracy(self) -> MetricScore:
        """The share of right answers."""
        return self.scores[0].score

    def facts(self) -> dict[str, Any]:
        return {
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
        }

    def figure(self, name: str) -> "Figure":
        """Which class is taken for which: a heat map with counts."""
        from weft.figures.confusion import confusion_map

        title = f"{name}\n{self.title}, accuracy {self.accuracy.value:.4f}"
        return confusion_map(self.matrix, self.labels, title=title)
