"""BLEU of every pair of languages beside copying the source."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.evaluation import ReportPicture
from weft.figures.intervals import intervals
from weft.tasks.multilingual.evaluation import ManyEvaluation


class MultilingualReport(ReportPicture):
    """Which pairs a model translates well, unseen ones too."""

    shows: ClassVar[str] = "BLEU of each pair"

    def draw(self, name: str, evaluation: ManyEvaluation) -> Figure:
        """A row for each pair, on one scale."""
        rows = []
        for pair, one in evaluation.pairs.items():
            unseen = ", never trained" if pair in evaluation.unseen else ""
            rows.append(one.scored[0].renamed(f"{pair}{unseen}"))
        first = next(iter(evaluation.pairs.values()))
        return intervals(rows, title=f"{name}: BLEU, {first.title.partition(' pairs, ')[2]}", shared=True)
