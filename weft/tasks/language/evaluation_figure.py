"""Loss by how often a token was seen in training."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.evaluation import ReportPicture
from weft.tasks.language.evaluation import ProseEvaluation
from weft.tasks.language.figure import nats_by_frequency


class LanguageReport(ReportPicture):
    """Which tokens a model finds hard, beside the n-gram model and the mixture."""

    shows: ClassVar[str] = "nats a token by how often it was seen"

    def draw(self, name: str, evaluation: ProseEvaluation) -> Figure:
        """Bars."""
        note = (
            f"unit: token with </s> | vocabulary: {evaluation.vocabulary} | context: {evaluation.context} | "
            f"tokens: {len(evaluation.model.logp):,}"
        )
        return nats_by_frequency(evaluation.buckets, title=f"{name}: {evaluation.title}", note=note)
