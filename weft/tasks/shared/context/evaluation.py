"""Perplexities of models that read from both ends, each beside what word frequencies alone reach."""

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.scored import Scored, as_json, report


class Side(NamedTuple):
    """Nats of words, by how much stood beside each."""

    name: str
    words: np.ndarray  # [N] that stood beside it
    nats: np.ndarray  # [N]


class ContextEvaluation(NamedTuple):
    """Scores beside their baselines."""

    title: str
    outputs: Sequence[str]
    scored: list[Scored]
    sides: list[Side]
    beside: str  # what Side.words counts

    @property
    def lowest(self) -> dict[str, float]:
        """Nats of the baselines of the perplexity."""
        return {name: math.log(value) for name, value in self.scored[0].baselines.items()}

    def text(self) -> str:
        """For a reader."""
        return "\n".join([self.title, *report(self.scored)])

    def json(self) -> str:
        """For a program."""
        return json.dumps({"title": self.title, "scores": as_json(self.scored)}, indent=1) + "\n"


def perplexity(nats: float) -> float:
    """exp(nats), as far as floats go."""
    return math.exp(min(nats, 700.0))
