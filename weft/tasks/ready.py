"""A task made ready: it has what it learnt from the data and, during training, the data.

`Task.prepare` and `Task.open` return a complete Ready; nothing is added to it later.
Read next: predictor.py; tag/ready.py, a short one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from torch import nn

from weft import rooms
from weft.errors import ConfigError
from weft.nn.embed.contextual import Context
from weft.tasks.evaluation import Evaluation
from weft.tasks.predictor import Predictor
from weft.tasks.validation import Validation
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.shared.inspected.inspected import Examples, Inspected
    from weft.tasks.task import Task

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


class Contextual(NamedTuple):
    """Words in context, for models of other tasks."""

    read: Callable[[Sequence[Sequence[str]]], Any]  # sentences [B] of one or more words
    model: Context  # the layers [B, S, D] of the sentences


class Training(ABC):
    """The training data: its order, its batches and its validation.

    Attributes:
        streams: as in Task: whether a batch continues from the state after the previous one.
    """

    streams: bool = False

    @abstractmethod
    def plan(self, seed: int) -> Any:
        """The order of the training batches: `.epoch(number)` returns lists of example numbers."""

    @abstractmethod
    def collate(self, numbers: np.ndarray) -> Any:
        """A batch of the training examples with these numbers, with `to(device)` and `target_tokens`.

        What it draws at random comes from the open generator (weft/nn/randomness.py), whose numbers depend on
        the batch alone.

        A batch may also have `rows(slice)`, which returns some of its rows with the same padding, or None if
        it cannot. A batch that does not fit into memory is then computed in parts with the same dropout.
        """

    @abstractmethod
    def validate(self, model: nn.Module) -> Validation:
        """Scores on the validation data; the model is in evaluation mode, gradients are off."""


class Ready(ABC):
    """Vocabularies, scales and whatever else a model of the task needs.

    Attributes:
        task: the recipe.
        training: the training data; None unless prepared for training.
    """

    task: "Task"
    training: Training | None = None

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model with `loss(batch) -> Loss`."""

    @abstractmethod
    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Predictor[Any]:
        """The trained model, ready to answer inputs.

        Args:
            model: trained, in evaluation mode.
            options: the user's values for `task.options["predict"]`.

        Raises:
            ConfigError: the options do not fit together.
        """

    @abstractmethod
    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> Evaluation:
        """Scores on a split of the recipe's data, or on other files, next to the baselines.

        Args:
            model: trained, in evaluation mode.
            split: the split to score.
            data: the user's files, to score instead.
            options: the user's values for `task.options["evaluate"]`.
        """

    def inspected(
        self, model: nn.Module, text: str | None, examples: "Examples", options: Mapping[str, Any] = {}
    ) -> "Inspected":
        """What `weft inspect` shows of one input, by `inspected` in the folder's inspected.py.

        If `text` is None, the input is one of `examples`, from the run's validation data.
        """
        from weft.tasks.shared.inspected.inspected import Inspected, checked

        file = rooms.file_beside(type(self), "inspected")
        if file is None:
            return Inspected(text="" if text is None else checked(text), answer="")
        found: Inspected = file.inspected(self, model, text, examples, options)
        return found

    def rows(self) -> Mapping[str, Sequence[str]]:
        """The names of the rows of tables, such as pieces, by the names of weights; others are left out.

        A training that starts with parts of another run (`training.start_parts`) finds rows by them.
        """
        return {}

    def writes(self) -> Vocabulary | None:
        """The vocabulary of the text that the model writes for a source; None if it writes no text."""
        return None

    def common(self) -> Mapping[str, Any]:
        """What the members of an ensemble must share, by name (shared/writing/members.py)."""
        return {}

    def contextual(self, model: nn.Module) -> Contextual:
        """A model of this task as a source of words in context.

        Raises:
            ConfigError: the task has none.
        """
        raise ConfigError(
            f"model: embedding.contextual: expected a run with words in context, got "
            f"{self.task.about()}; name a run of a task that is trained on running text, such as elmo"
        )


def named_rows(
    vocabulary: Vocabulary, source: Vocabulary | None = None, more: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The rows of the tables and the output layer of a model over pieces; see `Ready.rows`.

    Args:
        vocabulary: of `embed` and of the head.
        source: of `source_embed`, if there is one.
        more: names of symbols after the pieces.
    """
    pieces = [*vocabulary.pieces(range(len(vocabulary))), *more]
    heads = ("head", "head.words", "head.symbols")
    found = {f"{head}.{kind}": pieces for head in heads for kind in ("weight", "bias")}
    found["embed.table.weight"] = pieces
    if source is not None:
        names = pieces if source is vocabulary else [*source.pieces(range(len(source))), *more]
        found["source_embed.table.weight"] = names
    return found


def training_of(ready: Ready) -> Training:
    """The training data of a task that was prepared for training."""
    assert ready.training is not None, "opened for use, not prepared for training"
    return ready.training
