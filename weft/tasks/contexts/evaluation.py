"""Perplexities of models that read from both ends, each beside what word frequencies alone reach."""

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

from weft.metrics.floor import beside


class Line(NamedTuple):
    """One score, and its floor."""

    name: str
    value: float
    floor: float
    higher: bool = False


class ContextEvaluation(NamedTuple):
    """Scores beside their floors."""

    title: str
    outputs: Sequence[str]
    lines: list[Line]
    signature: str

    def text(self) -> str:
        """For a reader."""
        shown = [f"{self.title} ({self.signature})"]
        for name, value, floor, higher in self.lines:
            below = beside(value, floor, higher=higher)
            shown.append(f"  {name} {value:.4g}   floor: frequencies alone {floor:.4g}{below}")
        return "\n".join(shown)

    def json(self) -> str:
        """For a program."""
        lines = {one.name: {"value": one.value, "floor": one.floor} for one in self.lines}
        return (
            json.dumps({"title": self.title, "signature": self.signature, "scores": lines}, indent=1) + "\n"
        )


def perplexity(nats: float) -> float:
    """exp(nats), as far as floats go."""
    return math.exp(min(nats, 700.0))
