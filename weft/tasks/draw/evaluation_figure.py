"""True pictures and what the model drew for their captions, side by side."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weft.figures.colours import FAINT, INK
from weft.figures.letters import printable

if TYPE_CHECKING:
    from weft.tasks.draw.evaluation import DrawEvaluation

SHOWN = 10


def figure(evaluation: "DrawEvaluation", name: str) -> Figure:
    """A column for each of the first captions: the true picture above, the drawn one below."""
    count = min(SHOWN, len(evaluation.texts))
    chosen = np.linspace(0, len(evaluation.texts) - 1, count).round().astype(int)
    size = (1.2 + 1.15 * count, 3.6)
    figure = Figure(figsize=size, facecolor="white", dpi=110, layout="constrained")
    rows = figure.subplots(2, count, squeeze=False)
    for place, number in enumerate(chosen):
        for axes, pictures in zip(rows[:, place], (evaluation.truth, evaluation.drawn), strict=True):
            axes.imshow(pictures[number], interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color(FAINT)
        words = "\n".join(textwrap.wrap(printable(evaluation.texts[number]), 16)[:4])
        rows[0, place].set_title(words, fontsize=7, color=INK, parse_math=False)
    rows[0, 0].set_ylabel("true", color=INK)
    rows[1, 0].set_ylabel("drawn", color=INK)
    figure.suptitle(printable(f"{name}: {evaluation.title}"), fontsize=10, color=INK, parse_math=False)
    return figure
