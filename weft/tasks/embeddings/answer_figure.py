"""The picture of an answer: a map of words and their nearest neighbours."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.figures.wordmap import word_map


def figure(asked: Sequence[str], near: Sequence[str], vectors: np.ndarray) -> Figure:
    """A map in which the words of the input are marked.

    Args:
        asked: N words of the input.
        near: M neighbours.
        vectors: [N + M, D]
    """
    return word_map([*asked, *near], vectors, title=f"what is near {' '.join(asked)}", marked=len(asked))
