"""The contract of a task: all that training, scoring and prediction know about data, model and answers.

Each task is a folder: task.py has its class, and the other files are named by their content (model, data,
predictor, evaluation, check, init, inspected, figure). shared/ holds what several tasks use.
Read next: translate/task.py, the main task.
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
"""Called with the current step of the work, how much of it is done, and the total (None if unknown)."""


class Other(Protocol):
    """Another run, opened (weft.run)."""

    @property
    def ready(self) -> "Ready":
        """The run's Ready: what it learnt from its data."""

    @property
    def model(self) -> nn.Module:
        """The run's model, in evaluation mode."""


class Task(ABC):
    """What to learn, from which data.

    Attributes:
        sections: the sections of a recipe that this task reads, and the class that checks each; the
            constructor takes the objects under the same names. A section `decoding` holds settings that may
            be changed when a run is used: `weft predict RUN --set KEY=VALUE`.
        better: for each validation score, whether higher or lower is better.
        evaluation: the class of the result of `evaluate`; callers ask it in advance what it can show.
        options: for the commands `predict`, `evaluate`, `inspect` and (data) `check`, the names of options
            that this task supports; it receives the user's values as a mapping.
        note: how the validation scores are computed; a sentence for the model card.
        streams: whether the state after a training batch is the state before the next one. The model then has
            `carry_on(batch, state) -> (Loss, State)`, and a batch's `continues` tells whether it continues.
        trained: opens another run, which this one depends on; weft/run sets it.
        untrained: the same, but from that run's recipe and vocabularies, with a new model.
        keeps: patterns of the files that `prepare` writes into a run. A run that starts from its weights
            (`training.start`) copies them; if the recipe changes before the first checkpoint, they are made
            again.
        suffixes: extensions of files that belong to this task alone, such as .conllu; `weft data check`
            finds the task by them. "*" takes the files that no other task claims.
        samples_readable: whether `inspected` can read the source of a validation sample.
        columns: column names in the first line of a .csv or .tsv table that identify this task.
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
        """Whether the content of a .csv or .tsv looks like data of this task."""
        return False

    @property
    def loss_unit(self) -> str:
        """The unit of the training loss, for figures."""
        return "nats"

    @abstractmethod
    def about(self) -> str:
        """The task and its data, for titles: "en to es, on libreoffice-help"."""

    @abstractmethod
    def has(self, split: Split) -> bool:
        """Whether the recipe names data for this split."""

    @abstractmethod
    def check_ready(self) -> None:
        """Check that data and model are available, before a run directory is made; reads no data.

        Raises:
            ConfigError: the message starts with the faulty section, if there is only one.
            DataError: files are missing.
        """

    @abstractmethod
    def rehearse(self) -> Loss:
        """The loss of a small made-up batch, as a check that the parts of the model fit together."""

    @abstractmethod
    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Read the training data; learn what the run lacks, such as vocabularies, and save it there.

        Args:
            run: the run directory.
            progress: called with the current step.
        """

    @abstractmethod
    def open(self, run: Path) -> Ready:
        """Read what `prepare` saved in a run, for use without the training data."""

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Report every problem in data files of this task, with its place.

        Raises:
            ConfigError: this task has no checks.
        """
        raise ConfigError(f"{files[0]}: this task has no data checks yet; weft train reads its files")
