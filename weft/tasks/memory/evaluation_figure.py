"""The figure of an evaluation: the score by the age of the remembered input."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weft.figures.by_place import by_place

if TYPE_CHECKING:
    from weft.tasks.memory.evaluation import MemoryEvaluation


def figure(evaluation: "MemoryEvaluation", name: str) -> Figure:
    """The score of sums by the distance of their first number, or of symbols by their place."""
    adding = evaluation.values.shape[1] == 1 and evaluation.scores[0].score.name == "MSE"
    x = "steps since the first of the two numbers" if adding else "place of the symbol, from 1"
    y = "squared error" if adding else "share right"
    flat = np.ravel(evaluation.places), np.ravel(evaluation.values)
    title = f"{name}: {evaluation.title}"
    return by_place({name: flat}, x=x, y=y, title=title, baselines=evaluation.scores[0].baselines)
