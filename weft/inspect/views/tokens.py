"""The choice at each position, its probability, and the alternatives."""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.figures.axes import bar_axes, blank, printable
from weft.figures.colours import BARS, INK
from weft.figures.records import Figure
from weft.inspect.views.view import SLANTED, Block, View, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection, TokenChoice


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
