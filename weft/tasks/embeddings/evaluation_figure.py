"""A map of the words that were asked about."""

from typing import ClassVar

from matplotlib.figure import Figure

from weft.figures.evaluation import ReportPicture
from weft.figures.wordmap import word_map
from weft.tasks.embeddings.evaluation import WordsEvaluation


class EmbeddingsReport(ReportPicture):
    """Which words lie near each other."""

    shows: ClassVar[str] = "map of words"

    def draw(self, name: str, evaluation: WordsEvaluation) -> Figure:
        """A map of at most 80 words."""
        score = evaluation.scored[0].score
        title = f"{name}: words of {evaluation.title}, {score.name} {score.value:.1f}"
        return word_map(evaluation.shown, evaluation.vectors, title=title)
