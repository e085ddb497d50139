"""Perplexities of models that read from both sides, each beside that of word frequencies alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from weft.metrics.scored import Scored
from weft.tasks.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Side(NamedTuple):
    """Nats of words, and how much context each had."""

    name: str
    words: np.ndarray  # [N] of context
    nats: np.ndarray  # [N]


@dataclass(frozen=True)
class ContextEvaluation(Evaluation):
    """Scores beside their baselines."""

    title: str
    outputs: Sequence[str]
    scores: list[Scored]
    sides: list[Side]
    beside: str  # what Side.words counts
    shows: ClassVar[str] = "nats by how much stands beside a word"

    @property
    def lowest(self) -> dict[str, float]:
        """Nats of the baselines of the perplexity."""
        return {name: math.log(value) for name, value in self.scores[0].baselines.items()}

    def figure(self, name: str) -> "Figure":
        """How much a model gains from context: a line for each direction."""
        from weft.figures.by_place import by_place

        lines = {side.name: (side.words, side.nats) for side in self.sides}
        title = f"{name}: {self.title}"
        return by_place(lines, x=self.beside, y="nats", title=title, baselines=self.lowest)


def perplexity(nats: float) -> float:
    """exp(nats); of more than 700 nats as of 700, since floats end there."""
    return math.exp(min(nats, 700.0))
