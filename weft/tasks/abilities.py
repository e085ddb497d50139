"""Abilities that only some tasks have. Callers test for them with isinstance, never by a task's name.

Read next: task.py and predictor.py, what every task has.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from weft.search.offered import SearchSettings
from weft.text.vocabulary import SOS

if TYPE_CHECKING:
    from weft.models import Generator
    from weft.search.offered import Decoding
    from weft.tasks.seq2seq.sections import PairData
    from weft.tasks.seq2seq.translator import Translator
    from weft.text.vocabulary import Vocabulary


@runtime_checkable
class Rewrites(Protocol):
    """A Pipeline whose model writes a text for a source text, by a search that can be traced."""

    source: "Vocabulary"  # of the source
    decoding: "Decoding"  # the recipe's search settings
    domains: Sequence[str]  # of its training files

    def directions(self) -> Sequence[tuple[str, str]]:
        """(source, target) languages of each direction; empty if the task does not translate languages."""

    def translator(self, model: "Generator", decoding: "Decoding", target: str = "") -> "Translator":
        """The trained model, ready to search."""

    def with_direction(self, text: str, target: str) -> str:
        """A text in the form that makes `inspection` translate it into this language."""

    def without_direction(self, sample: str) -> str:
        """The source of a validation sample as a user would type it, without its direction."""


class PairDirection(NamedTuple):
    """A source and a target language of a task on pairs, with its data."""

    name: str  # "" if the task has only one
    data: "PairData"
    trained: bool = True  # False if it is only scored


@runtime_checkable
class OnPairs(Protocol):
    """A Task that is trained on pairs of texts, so that another model can write its targets."""

    def corpora(self) -> Sequence[PairDirection]:
        """Its directions."""

    def data_in(self, folder: Path, train: str, *, tested: bool) -> Mapping[str, Any]:
        """The settings of the recipe's section `data` that read its pairs from other files."""


Expected = tuple[int, float, Sequence[tuple[int, float]]]
"""A token, its log-probability in nats, and the likeliest tokens in its place with theirs, best first."""


class TextContinuation(Protocol):
    """Continues texts, token by token."""

    vocabulary: "Vocabulary"
    reading: "Reading"

    @property
    def reader(self) -> "Reader":
        """The model as the search sees it."""

    @property
    def decoding(self) -> SearchSettings:
        """The recipe's settings for continuing a text."""

    @property
    def ends(self) -> int:
        """Number of </s> after which writing stops."""

    def added(self, text: str, given: list[int], added: list[int]) -> str:
        """The text that the tokens `added` append to a text that was read as the tokens `given`."""

    def expected(self, rows: Sequence[Sequence[int]], k: int) -> Sequence[Sequence[Expected]]:
        """How much each token of the rows after the first was expected, with k alternatives."""


Spelling = Callable[[int], tuple[int, str]]
"""Is given the tokens of a text in order; returns where each begins in it, and the text it completes."""


class Reading(ABC):
    """How a model reads a text: as tokens and back."""

    opening: Sequence[int]  # tokens read before a text

    @abstractmethod
    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without those read before it."""

    @abstractmethod
    def begins(self, text: str) -> list[int]:
        """The place in a text where each of its tokens begins."""

    @abstractmethod
    def decoded(self, tokens: Sequence[int]) -> str:
        """The text of known tokens."""

    @abstractmethod
    def spelling(self) -> Spelling:
        """Spells tokens one by one; the result is `decoded` of all of them."""

    @abstractmethod
    def shown(self, tokens: Sequence[int]) -> list[str]:
        """Each token as text."""

    def row(self, text: str) -> list[int]:
        """What the model reads for a text: at least one token."""
        return [*self.opening, *self.tokens(text)] or [SOS]


class Reader(Protocol):
    """A model as a search sees it: the state after a text, and one step from a state."""

    def start(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Tensor]:
        """The state after rows of equal length without their last token, and that token [B]."""

    def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Log-probabilities [B, V] of the next token, and the next state."""


@runtime_checkable
class ContinuesText(Protocol):
    """A Pipeline whose model continues a text."""

    def writer(self, model: Any) -> TextContinuation:
        """The trained model, in evaluation mode, ready to continue texts."""


class Decision(Protocol):
    """A decision between classes."""

    @property
    def label(self) -> str:
        """The most probable class."""

    @property
    def prob(self) -> float:
        """The highest probability."""

    @property
    def probs(self) -> np.ndarray:
        """[C] probabilities, in the order of the classes."""


class WeightedDecision(NamedTuple):
    """A decision on a text, and the weight of each word in it."""

    decision: Decision
    words: list[str]
    weights: np.ndarray  # [words], their sum is 1
    shown: str  # what the weights are, for a caption


@runtime_checkable
class Weighs(Protocol):
    """A predictor that reports the weight of each word of a text in its decision."""

    @property
    def classes(self) -> Sequence[str]:
        """All classes, in the order of the probabilities."""

    def explain(self, text: str) -> WeightedDecision:
        """Decide on a text and weigh its words."""


@runtime_checkable
class HasVectors(Protocol):
    """A predictor with word vectors."""

    matrix: np.ndarray  # [V, D]

    @property
    def words(self) -> Sequence[str]:
        """[V] the words, in the order of the rows."""

    def save(self, path: str | Path) -> None:
        """Write the vectors, in the format named by the extension."""
