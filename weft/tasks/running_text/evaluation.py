"""Perplexities of models that read in both directions, each next to that of word frequencies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from weft.metrics.scored import ScoreWithBaselines
from weft.tasks.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Side(NamedTuple):
    """The loss of each word, and the length of its context."""

    name: str
    words: np.ndarray  # [N] length of the context in words
    nats: np.ndarray  # [N]


@dataclass(frozen=True)
class ContextEvaluation(Evaluation):
    """Scores next to their baselines."""

    title: str
    outputs: Sequence[str]
    scores: list[ScoreWithBaselines]
    sides: list[Side]
    beside: str  # what Side.words counts
    shows: ClassVar[str] = "nats by length of the context"

    @property
    def lowest(self) -> dict[str, float]:
        """Nats of the baselines of the perplexity."""
        return {name: math.log(value) for name, value in self.scores[0].baselines.items()}

    def figure(self, name: str) -> "Figure":
        """The loss by length of the context, with a line for each direction."""
        from weft.figures.by_place import by_place

        lines = {side.name: (side.words, side.nats) for side in self.sides}
        title = f"{name}: {self.title}"
        return by_place(lines, x=self.beside, y="nats", title=title, baselines=self.lowest)


def perplexity(nats: float) -> float:
    """exp(nats), with nats limited to 700 to avoid overflow."""
    return math.exp(min(nats, 700.0))
