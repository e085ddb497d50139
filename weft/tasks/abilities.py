"""Abilities that only some tasks have. Callers test for them with isinstance and name no task.

Read next: ready.py and predictor.py, what every task has.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

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

    def directed(self, text: str, target: str) -> str:
        """A text as `inspected` reads it, so that it is translated into this language."""

    def typed(self, sample: str) -> str:
        """The source of a validation sample as a user types it, without its direction."""


class Continuer(Protocol):
    """Continues texts, token by token."""

    @property
    def vocabulary(self) -> "Vocabulary":
        """Of all tokens."""

    @property
    def reader(self) -> "Reader":
        """What a search sees of the model."""

    @property
    def decoding(self) -> "Continued":
        """How the recipe continues a text."""

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text; a line end in it is </s>."""

    def room(self, read: int) -> int | None:
        """How many tokens can be written after so many; None for any number."""

    def added(self, text: str, given: list[int], added: list[int]) -> str:
        """What the tokens `added` add to a text of the tokens `given`."""

    def score(self, text: str) -> tuple[list[str], list[float]]:
        """The pieces of a text and its end, and the log-probability of each, in nats."""


class Reader(Protocol):
    """A model as a search sees it: a state after a text, and one step from it."""

    def start(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Tensor]:
        """The state after texts of equally many tokens without their last one, and that one [B]."""

    def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Log-probabilities [B, V] of the next token, and the next state."""


class Continued(Protocol):
    """Settings of a continuation."""

    @property
    def seed(self) -> int:
        """Of sampling."""

    @property
    def max_lines(self) -> int:
        """Line ends after which writing stops."""


@runtime_checkable
class Continues(Protocol):
    """A Ready whose model continues a text."""

    def writer(self, model: nn.Module) -> Continuer:
        """The model at work, in evaluation mode."""


class Decided(Protocol):
    """A decision between classes."""

    @property
    def label(self) -> str:
        """The class."""

    @property
    def probs(self) -> np.ndarray:
        """[C] in the order of the classes."""


class Weighed(Protocol):
    """A decision on a text, and how much each word weighed in it."""

    @property
    def decided(self) -> Decided:
        """The decision."""

    @property
    def words(self) -> Sequence[str]:
        """[W] the words of the text."""

    @property
    def weights(self) -> np.ndarray:
        """[W] of the words; they sum to 1."""

    @property
    def shown(self) -> str:
        """Which weights these are."""


@runtime_checkable
class Weighs(Protocol):
    """A predictor that says how much each word of a text weighed in its decision."""

    @property
    def classes(self) -> Sequence[str]:
        """All classes, in the order of the probabilities."""

    def look(self, text: str) -> Weighed:
        """Decide on a text."""


@runtime_checkable
class HasVectors(Protocol):
    """A predictor with word vectors."""

    matrix: np.ndarray  # [V, D]

    @property
    def words(self) -> Sequence[str]:
        """[V] the words, in the order of the rows."""

    def save(self, path: str | Path) -> None:
        """Write the vectors, in the format that the ending names."""
