"""The features that speak most for each tag, in a linear tagger."""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.figures.axes import blank, printable
from weft.figures.records import Figure
from weft.inspect.views.view import SLANTED, Block, View, draw_matrix, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import FeatureWeights, Inspection

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
