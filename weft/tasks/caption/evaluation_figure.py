"""Every score beside what needs no model."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.evaluation import ReportPicture
from weft.figures.intervals import intervals
from weft.tasks.caption.evaluation import CaptionEvaluation


class CaptionReport(ReportPicture):
    """By how much each score is better than the baselines."""

    shows: ClassVar[str] = "scores, intervals and baselines"

    def draw(self, name: str, evaluation: CaptionEvaluation) -> Figure:
        """A row for each score."""
        return intervals(evaluation.scored, title=f"{name}: {evaluation.title}")
