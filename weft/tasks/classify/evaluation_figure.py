"""The confusion matrix of a classifier."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.confusion import confusion_map
from weft.figures.evaluation import ReportPicture
from weft.tasks.classify.evaluation import LabelEvaluation


class ClassifyReport(ReportPicture):
    """Which class is taken for which."""

    shows: ClassVar[str] = "confusion matrix"

    def draw(self, name: str, evaluation: LabelEvaluation) -> Figure:
        """A heat map with counts."""
        title = f"{name}\n{evaluation.title}, accuracy {evaluation.accuracy.value:.4f}"
        return confusion_map(evaluation.matrix, evaluation.labels, title=title)
