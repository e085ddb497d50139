"""BLEU by source length."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.evaluation import ReportPicture
from weft.figures.quality import quality_by_length
from weft.tasks.shared.writing.evaluation import PairEvaluation


class TranslateReport(ReportPicture):
    """How quality falls, or does not, as sentences grow longer."""

    shows: ClassVar[str] = "BLEU by source length"

    def draw(self, name: str, evaluation: PairEvaluation) -> Figure:
        """A line with its confidence band."""
        return quality_by_length({name: evaluation.lengths}, title=evaluation.title)
