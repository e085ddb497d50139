"""Words of a text: the weight of each in a decision, its share that was copied, choices, telling features."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from weft.figures.axes import bar_axes, blank, printable
from weft.figures.colours import BARS, INK
from weft.figures.records import Figure
from weft.inspect.views.view import SLANTED, Block, View, draw_matrix, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import FeatureWeights, Inspection, TokenChoice


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


class TokensView(View):
    """Probability of each choice, and the alternatives."""

    title = "Probabilities"
    order = 15

    def __init__(self, choices: Sequence[TokenChoice], what: str) -> None:
        self.choices, self.what = choices, what

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "TokensView | None":
        return cls(subject.choices, subject.chosen_what) if subject.choices else None

    def blocks(self) -> list[Block]:
        return [
            said(f"The probability of {self.what}. Hover over one, or use the arrow keys."),
            {
                "kind": "choices",
                "taken": [one.taken for one in self.choices],
                "given": [one.given for one in self.choices],
                "prob": [round(one.prob, 5) for one in self.choices],
                "others": [[[name, round(prob, 5)] for name, prob in one.others] for one in self.choices],
            },
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "position", "given", "taken", "probability", "rank", "alternative", "its probability"
        for place, one in enumerate(self.choices, 1):
            for rank, (name, prob) in enumerate(one.others, 1):
                yield place, one.given, one.taken, one.prob, rank, name, prob

    def figure(self) -> "Figure":
        """Bars of the choices by position, or of the alternatives if there is one choice."""
        if len(self.choices) == 1:
            names, probs = zip(*self.choices[0].others, strict=True)
        else:
            names = tuple(f"{one.given} {one.taken}".strip() for one in self.choices[:60])
            probs = tuple(one.prob for one in self.choices[:60])
        figure = blank(max(5.0, 0.32 * len(names)), 3.4)
        axes = figure.add_subplot()
        axes.bar(np.arange(len(names)), probs, color=BARS[0], width=0.75)
        labels = [printable(name)[:18] for name in names]
        axes.set_xticks(range(len(names)), labels, fontsize=8, **SLANTED)
        axes.set_ylim(0, 1)
        axes.set_ylabel("probability", color=INK)
        bar_axes(axes)
        return figure


LISTED, DRAWN = 10, 2
"""Features of each tag in the table, and in the picture."""


class FeaturesView(View):
    """Features that speak most for each tag."""

    title = "Telling features"
    order = 13

    def __init__(self, found: FeatureWeights) -> None:
        self.found = found
        self.order_of = np.argsort(-found.weights, axis=0, kind="stable")  # [V, C] the largest first

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "FeaturesView | None":
        return None if subject.features is None else cls(subject.features)

    def blocks(self) -> list[Block]:
        rows = []
        for column, tag in enumerate(self.found.tags):
            told = [f"{name} {weight:.2f}" for name, weight in self._top(column)]
            rows.append([tag, ", ".join(told)])
        about = "A word gets the weights of all its features, and its neighbours' tags add theirs."
        return [
            said(about),
            {"kind": "table", "head": ["label", "features with the largest weights"], "rows": rows},
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "label", "feature", "weight"
        for column, tag in enumerate(self.found.tags):
            for name, weight in self._top(column):
                yield tag, name, weight

    def figure(self) -> "Figure":
        """The weights of the two strongest features of each tag, for all tags."""
        names, tags, weights = self.found
        chosen = list(dict.fromkeys(self.order_of[:DRAWN].T.flatten().tolist()))
        most = float(np.abs(weights[chosen]).max())
        figure = blank(0.3 * len(chosen) + 2.5, 0.3 * len(tags) + 2.5)
        shown = [names[n] for n in chosen]
        axes = figure.subplots()
        draw_matrix(
            axes, matrix("Weights of telling features", weights[chosen].T, tags, shown, low=-most, high=most)
        )
        axes.set_xticks(range(len(shown)), map(printable, shown), **SLANTED)
        axes.set_yticks(range(len(tags)), map(printable, tags), parse_math=False)
        return figure

    def _top(self, column: int) -> list[tuple[str, float]]:
        some = self.order_of[:LISTED, column].tolist()
        return [(self.found.names[n], float(self.found.weights[n, column])) for n in some]
