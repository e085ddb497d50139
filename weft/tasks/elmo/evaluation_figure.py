"""Loss of a word by how much is read beside it."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.by_place import by_place
from weft.figures.evaluation import ReportPicture
from weft.tasks.shared.context.evaluation import ContextEvaluation


class ElmoReport(ReportPicture):
    """How much a model gains from what stands beside a word."""

    shows: ClassVar[str] = "nats by how much stands beside a word"

    def draw(self, name: str, evaluation: ContextEvaluation) -> Figure:
        """A line for each direction."""
        lines = {side.name: (side.words, side.nats) for side in evaluation.sides}
        title = f"{name}: {evaluation.title}"
        return by_place(lines, x=evaluation.beside, y="nats", title=title, baselines=evaluation.lowest)
