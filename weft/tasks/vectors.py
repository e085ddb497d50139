"""An ability that only some predictors have: a vector for each word. `weft export` writes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class HasVectors(Protocol):
    """A predictor with word vectors."""

    matrix: np.ndarray  # [V, D]

    @property
    def words(self) -> Sequence[str]:
        """[V] the words, in the order of the rows."""

    def save(self, path: str | Path) -> None:
        """Write the vectors, in the format that the ending names."""
