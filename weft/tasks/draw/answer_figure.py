"""A sheet of drawn pictures with their captions."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.figures.colours import INK

COLUMNS = 8


def sheet(drawn: Sequence[tuple[str, np.ndarray]]) -> Figure:
    """Pictures in rows, each below its caption."""
    columns = min(COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=(1.5 * columns, 1.85 * rows), facecolor="white", layout="constrained")
    places = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for place in places:
        place.set(xticks=[], yticks=[])
        place.spines[:].set_visible(False)
    for place, (text, picture) in zip(places, drawn, strict=False):
        place.imshow(picture, interpolation="nearest")
        place.spines[:].set_visible(True)
        place.spines[:].set_color("#dfe4ec")
        shown = "\n".join(textwrap.wrap(text, 20)[:3])
        place.set_title(shown, fontsize=7, color=INK, parse_math=False)
    return figure
