"""Text coloured by how likely each of its tokens was, line by line beside what `predict` says."""

from weft.figures.answers import Look
from weft.figures.picture import save
from weft.tasks.language.figure import coloured_text
from weft.tasks.language.predictor import Writer


class LanguageLook(Look):
    """Draws each text that was written, as the model itself sees it."""

    predictor: Writer

    def see(self, look: str) -> None:
        """One text."""
        if self.plot is None or self.drawn >= self.limit:
            return
        self.drawn += 1
        figure = coloured_text(self.predictor.score(look), title=look[:80])
        for suffix in ("png", "svg"):
            save(figure, self.plot / f"{self.drawn}.{suffix}")
