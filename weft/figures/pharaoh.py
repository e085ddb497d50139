"""Convert attention over pieces to attention over words, and that to alignments as text.

Read next: alignment.py, which draws the same numbers.
"""

from collections.abc import Sequence

import numpy as np

from weft.errors import ShapeError


def merge(
    weights: np.ndarray, source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]
) -> np.ndarray:
    """Attention [T, S] between words: the sum over a source word's pieces, the mean over a target word's.

    So the weights of each target word have the same sum as before. Pieces that belong to no word, such as the
    end symbol, are ignored.
    """
    over_target = _membership(target, weights.shape[0], "target")
    over_target /= np.maximum(over_target.sum(1, keepdims=True), 1)
    return over_target @ weights @ _membership(source, weights.shape[1], "source").T


def pharaoh(weights: np.ndarray) -> str:
    """Each target word's strongest source word, the first of ties, as "source-target" pairs from 0."""
    if weights.shape[1] == 0:
        return ""
    return " ".join(f"{s}-{t}" for t, s in enumerate(weights.argmax(1)))


def _membership(words: Sequence[Sequence[int]], pieces: int, side: str) -> np.ndarray:
    """[words, pieces]: 1 where a piece belongs to a word."""
    member = np.zeros((len(words), pieces))
    for number, positions in enumerate(words):
        if not positions or min(positions) < 0 or max(positions) >= pieces:
            raise ShapeError(
                f"{side} word {number}: expected one or more pieces from 0 to {pieces - 1}, "
                f"got {list(positions)}"
            )
        member[number, list(positions)] = 1
    return member
