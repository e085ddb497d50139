"""The contract of a task: all that training, scoring and use know of data, model and answers.

A task is a folder here: task.py holds its class, the other files are named by what they hold (model, data,
predictor, evaluation, check, init, inspected, figure). shared/ holds what several tasks use.
Read next: translate/task.py, the main job.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from torch import nn

from weft.data.report import Report
from weft.errors import ConfigError
from weft.nn.heads.head import Loss
from weft.tasks.evaluation import Evaluation
from weft.tasks.ready import Ready, Split

Progress = Callable[[str, float, float | None], None]
"""Told what is being done, how far it is, and of how much (None where that is unknown)."""


class Other(Protocol):
    """Another run, opened (weft.run)."""

    @property
    def ready(self) -> "Ready":
        """What it has learnt from its data."""

    @property
    def model(self) -> nn.Module:
        """Its model, in evaluation mode."""


class Task(ABC):
    """What is learnt, from which data.

    Attributes:
        sections: the sections of a recipe that this task reads, and the class that checks each; the
            constructor takes the objects under the same names. A section `decoding` holds what may be
            changed when a run is used: `weft predict RUN --set KEY=VALUE`.
        better: for each score of a validation, whether a higher or a lower one is better.
        evaluation: the class of what `evaluate` gives; says before it is computed what it can show.
        options: for the commands `predict`, `evaluate`, `inspect` and (data) `check`, names of their options
            that this task understands; they arrive as a mapping with what the user gave.
        note: how the validation scores are computed, a sentence for the model card.
        streams: whether the state after a training batch is the state before the next one; the model then has
            `carry_on(batch, state) -> (Loss, State)`, and a batch says with `continues` whether it goes on.
        trained: gives another run, which this one stands on; weft/run sets it.
        untrained: the same from its recipe and vocabularies alone, with a model newly made.
        keeps: patterns of the files that `prepare` leaves in a run; another run that begins with its weights
            (`training.start`) takes them over; a recipe changed before the first checkpoint makes them anew.
        suffixes: endings of files that belong to this task alone, such as .conllu; `weft data check`
            knows the task by them. "*" takes the files that no other task claims.
        samples_readable: whether the source of a validation sample is a text that `inspected` takes.
        columns: names in the first line of a table, .csv or .tsv, that it knows this task by.
    """

    sections: ClassVar[Mapping[str, type]]
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]]
    evaluation: ClassVar[type[Evaluation]] = Evaluation
    options: ClassVar[Mapping[str, Sequence[str]]] = {}
    note: ClassVar[str] = ""
    keeps: ClassVar[Sequence[str]] = ("tokenizer*.json",)
    suffixes: ClassVar[Sequence[str]] = ()
    columns: ClassVar[Sequence[str]] = ()
    streams: bool = False
    trained: Callable[[Path], Other]
    untrained: Callable[[Path], Other]
    samples_readable: ClassVar[bool] = True

    @classmethod
    def knows(cls, table: Path) -> bool:
        """Whether a .csv or .tsv looks like one of this task's by what is in its columns."""
        return False

    @property
    def loss_unit(self) -> str:
        """What the training loss is a mean of, for pictures."""
        return "nats"

    @abstractmethod
    def about(self) -> str:
        """What is learnt from what, for people: "en to es, on libreoffice-help"."""

    @abstractmethod
    def has(self, split: Split) -> bool:
        """Whether the recipe names data for this split."""

    @abstractmethod
    def check_ready(self) -> None:
        """See that data and model can be had, before a run directory is made; no data is read.

        Raises:
            ConfigError: its sentence begins with the section that is at fault, if one alone is.
            DataError: files are missing.
        """

    @abstractmethod
    def rehearse(self) -> Loss:
        """The loss of a small made-up batch under a model of these parts, so that they fit together."""

    @abstractmethod
    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Read the data for training; learn, and keep in the run, what it lacks, such as vocabularies.

        Args:
            run: the run directory.
            progress: told what is being done.
        """

    @abstractmethod
    def open(self, run: Path) -> Ready:
        """What `prepare` left in a run, for use without the training data."""

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Everything that is wrong with data files of this task, each with its place.

        Raises:
            ConfigError: this task has no checks.
        """
        raise ConfigError(
            f"{files[0]}: there are no checks for files of this task yet; weft train reads them"
        )
