"""The weight of each word in a decision about the whole text, or its share that was copied."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from weft.figures.records import Figure
from weft.inspect.views.view import Block, View, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection


class ColouredWords(View):
    """A text with a number for each word, drawn darker the larger it is."""

    quantity: ClassVar[str]
    """What the numbers are called in the table."""

    top: ClassVar[float | None] = None
    """The number with the darkest colour; None for the largest one."""

    def __init__(self, words: Sequence[str], weights: np.ndarray, sentence: str, caption: str) -> None:
        self.words, self.weights, self.sentence, self.caption = words, weights, sentence, caption

    def blocks(self) -> list[Block]:
        weights = [round(float(weight), 5) for weight in self.weights]
        block: Block = {"kind": "words", "words": list(self.words), "weights": weights}
        return [said(self.sentence), block if self.top is None else {**block, "top": self.top}]

    def table(self) -> Iterable[Sequence[object]]:
        yield "position", "word", self.quantity
        for place, (word, weight) in enumerate(zip(self.words, self.weights.tolist(), strict=True), 1):
            yield place, word, weight

    def figure(self) -> "Figure":
        from weft.figures.coloured import coloured_text

        return coloured_text(self.words, self.weights, title=self.caption, top=self.top)


class WordsView(ColouredWords):
    """Words that decided the class."""

    title = "Words that weighed"
    order = 12
    quantity = "weight"

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "WordsView | None":
        if subject.weights is None or not subject.weights[0]:
            return None
        words, weights, kind = subject.weights
        return cls(words, weights, f"The weight of each word: {kind}.", f"{subject.answer} ({kind})")


COPIED = (
    "Each word of the best answer, coloured by the share of its probability that is copied from the source: "
    "dark words were copied, white ones were generated from the vocabulary. Alignment shows where they come "
    "from."
)
CAPTION = "Share of each word's probability that is copied from the source, in per cent"


class CopiedView(ColouredWords):
    """How much of each word was copied from the source."""

    title = "Copied words"
    order = 11
    quantity = "share copied"
    top = 1.0

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "CopiedView | None":
        if subject.copied is None:
            return None
        return cls(subject.hypotheses[0].pieces, subject.copied, COPIED, CAPTION)
