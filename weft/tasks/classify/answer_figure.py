"""Which words a classifier looked at: the text, coloured by how much each word weighed."""

from weft.figures.answers import Look
from weft.figures.coloured import coloured_text
from weft.figures.picture import save
from weft.tasks.classify.predictor import Classifier


class ClassifyLook(Look):
    """A picture a text, numbered as the texts are; one without words has none."""

    predictor: Classifier
    _number = 0

    def see(self, look: str) -> None:
        """Draw one text."""
        self._number += 1
        if self.plot is None or self.drawn >= self.limit or not look.strip():
            return
        looked = self.predictor.look(look)
        if not looked.words:
            return
        title = f"{looked.decided.label} ({100 * looked.decided.prob:.0f} %)"
        figure = coloured_text(looked.words, looked.weights, title=title, note=looked.shown)
        for suffix in ("png", "svg"):
            save(figure, self.plot / f"{self._number}.{suffix}")
        self.drawn += 1
