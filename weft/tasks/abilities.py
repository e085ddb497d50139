"""Abilities that only some tasks have. Callers test for them with isinstance and name no task.

Read next: ready.py and predictor.py, what every task has.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from weft.models import Generator
    from weft.tasks.shared.writing.decoding import Decoding
    from weft.tasks.shared.writing.translator import Translator
    from weft.text.vocabulary import Vocabulary


@runtime_checkable
class Rewrites(Protocol):
    """A Ready whose model writes a text for a text, by a search that can be traced."""

    source: "Vocabulary"  # of what is read
    decoding: "Decoding"  # how the recipe searches

    def directions(self) -> Sequence[tuple[str, str]]:
        """(source, target) languages of each direction; empty where no language is translated."""

    def translator(self, model: "Generator", decoding: "Decoding", target: str = "") -> "Translator":
        """The model at work.

        Args:
            model: trained, in evaluation mode.
            decoding: how to search.
            target: a language of `directions`; ignored where there is only one, or none.
        """


@runtime_checkable
class HasVectors(Protocol):
    """A predictor with word vectors."""

    matrix: np.ndarray  # [V, D]

    @property
    def words(self) -> Sequence[str]:
        """[V] the words, in the order of the rows."""

    def save(self, path: str | Path) -> None:
        """Write the vectors, in the format that the ending names."""
