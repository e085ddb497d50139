"""The answers of a classifier: the class of a text, or a row of a table with its class beside it.

A table that has a header is written again with new columns, so its header is an input and an answer too.
Read next: predictor.py, which makes them.
"""

import csv
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft.data.labelled import LabelledText
from weft.tasks.classify.explanation import Explanation
from weft.tasks.classify.reader import Decided
from weft.tasks.predictor import Answer, Json, Unanswered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREDICTED = "predicted"


class Row(NamedTuple):
    """A row of a table."""

    table: LabelledText
    cells: Sequence[str]  # those of the header are the names of the columns
    number: int  # from 1; 0 is the header

    def line(self, more: Sequence[str]) -> str:
        """The row with more cells, in the format of its table."""
        cells, mark = [*self.cells, *more], self.table.mark
        if mark == "\t":  # a .tsv is cut at tabs, whatever quotes are in it
            return mark.join(cells)
        text = io.StringIO()
        csv.writer(text, delimiter=mark, lineterminator="\n").writerow(cells)
        return text.getvalue().removesuffix("\n")


class Asked(NamedTuple):
    """A text to classify."""

    text: str
    row: Row | None = None  # of its table, if that has a header
    wrong: str = ""  # why the row cannot be read, with its place


class Header(Answer):
    """The header of a table, with the new columns.

    Args:
        row: the header.
        classes: those that get a column for their probability.
    """

    def __init__(self, row: Row, classes: Sequence[str]) -> None:
        self._row = row
        self._classes = classes

    def text(self) -> str:
        """All columns; the name of the first new one is longer where the table has such a column already."""
        name = PREDICTED
        while name in self._row.cells:
            name += "_"
        return self._row.line([name, *(f"{name}={one}" for one in self._classes)])

    def json(self) -> Json:
        return None


class Classified(Answer):
    """The class of a text.

    Args:
        asked: the text.
        decided: its class.
        classes: all of them, in the order of the probabilities.
        scores: whether `text` says the probabilities.
        explain: how much each word of a text weighed.
    """

    def __init__(
        self,
        asked: Asked,
        decided: Decided,
        classes: Sequence[str],
        *,
        scores: bool,
        explain: Callable[[str], Explanation],
    ) -> None:
        self._asked = asked
        self._decided = decided
        self._classes = classes
        self._scores = scores
        self._explain = explain

    def text(self) -> str:
        """The class; with scores also CLASS=PROBABILITY, the likeliest first; or the row of a table."""
        label, probs = self._decided.label, self._decided.probs
        if self._asked.row is not None:
            return self._asked.row.line([label, *(f"{prob:.4f}" for prob in probs if self._scores)])
        if not self._scores:
            return label
        best = np.argsort(-probs, kind="stable").tolist()
        return "\t".join([label, *(f"{self._classes[n]}={probs[n]:.4f}" for n in best)])

    def json(self) -> Json:
        """The class, its probability, and those of all classes; or the labels, where there are several."""
        probs: dict[str, Json] = dict(zip(self._classes, self._decided.probs.tolist(), strict=True))
        if self._decided.names is not None:
            return {"labels": list(self._decided.names), "probs": probs}
        return {"label": self._decided.label, "prob": self._decided.prob, "probs": probs}

    def figure(self) -> "Figure | None":
        """The words by their weights; None of a text without words."""
        from weft.tasks.classify.answer_figure import figure  # imports matplotlib

        explanation = self._explain(self._asked.text) if self._asked.text.strip() else None
        return figure(explanation) if explanation is not None and explanation.words else None

    def figure_name(self) -> str:
        """The number of the row in a table, the header not counted."""
        return "" if self._asked.row is None else str(self._asked.row.number)


class Unclassified(Unanswered):
    """A row of a table whose text has no class: its new cells are empty.

    Args:
        wrong: why, with the place of the text.
        row: of the table.
        empty: number of new cells.
    """

    def __init__(self, wrong: str, row: Row, empty: int) -> None:
        super().__init__(wrong)
        self._line = row.line([""] * empty)

    def text(self) -> str:
        return self._line
