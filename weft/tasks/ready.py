"""A task made ready: what it has learnt from the data is there, and so is the data while it is trained.

`Task.prepare` and `Task.open` give a Ready. Nothing in it is filled in later.
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
    model: Context  # gives the layers [B, S, D] of what was read


class Training(ABC):
    """The data of a training: its order, its batches and its validation.

    Attributes:
        streams: as the task's: whether a batch goes on with the state after the one before.
    """

    streams: bool = False

    @abstractmethod
    def plan(self, seed: int) -> Any:
        """The order of the training batches: `.epoch(number)` gives lists of example numbers."""

    @abstractmethod
    def collate(self, numbers: np.ndarray) -> Any:
        """The training examples of these numbers as a batch with `to(device)` and `target_tokens`.

        A batch may also have `rows(slice)`, which gives some of its rows with the same padding (None where
        it cannot). A batch that does not fit into memory is then computed in parts with the same dropout.
        """

    @abstractmethod
    def validate(self, model: nn.Module) -> Validation:
        """Scores on the validation data; the model is in evaluation mode, gradients are off."""


class Ready(ABC):
    """Vocabularies, scales and whatever else a model of the task needs.

    Attributes:
        task: the recipe it was made from.
        training: the data of a training; None when the run was opened for use.
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
            options: those of `task.options["predict"]` that the user gave.

        Raises:
            ConfigError: options that do not fit together.
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
        """Scores on a split of the recipe's data, or on other files, beside the baselines.

        Args:
            model: trained, in evaluation mode.
            split: which one.
            data: files of the user instead.
            options: those of `task.options["evaluate"]` that the user gave.
        """

    def inspected(
        self, model: nn.Module, text: str | None, examples: "Examples", options: Mapping[str, Any] = {}
    ) -> "Inspected":
        """What `weft inspect` shows of one input: by `inspected` of the folder's inspected.py.

        `text` is None for an example of the run's own, one of `examples` that it was validated on.
        """
        from weft.tasks.shared.inspected.inspected import Inspected, checked

        file = rooms.file_beside(type(self), "inspected")
        if file is None:
            return Inspected(text="" if text is None else checked(text), answer="")
        found: Inspected = file.inspected(self, model, text, examples, options)
        return found

    def writes(self) -> Vocabulary | None:
        """The vocabulary of what the model writes for a source; None where it writes no text for one."""
        return None

    def common(self) -> Mapping[str, Any]:
        """What runs that search together must share, by its usual name (shared/writing/members.py)."""
        return {}

    def contextual(self, model: nn.Module) -> Contextual:
        """Words in context by a model of this task.

        Raises:
            ConfigError: it has none.
        """
        raise ConfigError(
            f"model: embedding.contextual: expected a run that gives words in context, got "
            f"{self.task.about()}; name a run of a task that is trained on running text, such as elmo"
        )


def training_of(ready: Ready) -> Training:
    """The data of a training that has begun."""
    assert ready.training is not None, "opened for use, not prepared for training"
    return ready.training
