"""Word error rate by the length of what is said."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.evaluation import ReportPicture
from weft.figures.quality import quality_by_length
from weft.metrics.bylength import by_length
from weft.metrics.wer import Wer
from weft.tasks.speech.evaluation import SpeechEvaluation

EDGES = (2, 4, 8, 16)


class SpeechReport(ReportPicture):
    """Whether long recordings are heard worse than short ones."""

    shows: ClassVar[str] = "WER by words said"

    def draw(self, name: str, evaluation: SpeechEvaluation) -> Figure:
        """Bars with intervals."""
        said = evaluation.references
        rows = by_length(Wer(), evaluation.outputs, said, said, edges=EDGES)
        while rows[-1].score is None:  # nothing as long as that
            rows.pop()
        return quality_by_length({name: rows}, title=f"{name}: {evaluation.title}", x="words said")
