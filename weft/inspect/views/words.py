"""The weight of each word in a decision about the whole text."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weft.inspect.views.view import Block, View, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class WordsView(View):
    """Weights of words.

    Args:
        words, weights: words of the text with their weights, which sum to 1.
        shown: kind of the weights.
        answer: the decision.
    """

    title = "Words that weighed"
    order = 12

    def __init__(self, words: Sequence[str], weights: np.ndarray, shown: str, answer: str) -> None:
        self.words, self.weights, self.shown, self.answer = words, weights, shown, answer

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "WordsView | None":
        """The view, if the task provides weights of words."""
        if subject.weights is None or not subject.weights[0]:
            return None
        return cls(*subject.weights, subject.answer)

    def blocks(self) -> list[Block]:
        """The text, darker where a word has more weight."""
        return [
            said(f"The weight of each word: {self.shown}."),
            {
                "kind": "words",
                "words": list(self.words),
                "weights": [round(float(w), 5) for w in self.weights],
            },
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "position", "word", "weight"
        for place, (word, weight) in enumerate(zip(self.words, self.weights.tolist(), strict=True), 1):
            yield place, word, weight

    def figure(self) -> "Figure":
        from weft.figures.coloured import coloured_text

        return coloured_text(self.words, self.weights, title=f"{self.answer} ({self.shown})")
