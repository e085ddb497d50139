"""The contract of a task: all that the training loop knows of data, model and scores.

Read next: translate.py, the main job.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from torch import nn

Progress = Callable[[str, float, float | None], None]
"""Told what is being done, how far it is, and of how much (None where that is unknown)."""


class Sample(NamedTuple):
    """An example of the validation data and what the model makes of it, as text."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """How good the model is now."""

    scores: dict[str, float]
    samples: Sequence[Sample]


class Task(ABC):
    """What is learnt, from which data.

    Attributes:
        sections: the sections of a recipe that this task reads, and the class that checks each; the
            constructor takes the objects under the same names.
        better: for each score of a validation, whether a higher or a lower one is better.
    """

    sections: ClassVar[Mapping[str, type]]
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]]

    @abstractmethod
    def look(self) -> None:
        """See that data and model can be had, before a run directory is made; no data is read.

        Raises:
            ConfigError: its sentence begins with the section that is at fault, if one alone is.
            DataError: files are missing.
        """

    @abstractmethod
    def prepare(self, run: Path, progress: Progress) -> None:
        """Make ready for training: vocabularies (kept in the run), data. Twice does no more than once."""

    @abstractmethod
    def open(self, run: Path) -> None:
        """Make ready for use without the training data: what `prepare` left in the run is read."""

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model with `loss(batch) -> Loss`; after `prepare` or `open`."""

    @abstractmethod
    def plan(self, seed: int) -> Any:
        """The order of the training batches: `.epoch(number)` gives lists of example numbers."""

    @abstractmethod
    def collate(self, numbers: np.ndarray) -> Any:
        """The training examples of these numbers as a batch with `to(device)` and `target_tokens`."""

    @abstractmethod
    def validate(self, model: nn.Module) -> Validation:
        """Scores on the validation data; the model is in evaluation mode, gradients are off."""

    @abstractmethod
    def predictor(self, model: nn.Module) -> Any:
        """The trained model at work: its `predict(text)` answers with text."""
