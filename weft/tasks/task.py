"""The contract of a task: all that training, scoring and use know of data, model and answers.

A task is a folder here: task.py holds its class, the other files are named by what they hold (model, data,
predictor, evaluation, check, init, inspected, figure). shared/ holds what several tasks use.
Read next: translate/task.py, the main job.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from torch import nn

from weft import rooms
from weft.data.report import Report
from weft.errors import ConfigError
from weft.nn.embed.contextual import Context
from weft.nn.heads.head import Loss
from weft.tasks.evaluation import Evaluation
from weft.tasks.validation import Validation
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.shared.inspected.inspected import Examples, Inspected

Progress = Callable[[str, float, float | None], None]
"""Told what is being done, how far it is, and of how much (None where that is unknown)."""

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


class Answer(NamedTuple):
    """What `weft predict` writes for one input, in the order of the inputs."""

    text: str  # written as it is, with a line end after it
    look: Any = None  # what answer_figure.py draws from; None where nothing can be drawn
    wrong: str = ""  # why an input has no answer, its place first (a line each); the text has empty lines


class Other(Protocol):
    """Another run, opened (run.py)."""

    @property
    def task(self) -> Any:
        """What it has learnt."""

    @property
    def model(self) -> nn.Module:
        """Its model, in evaluation mode."""


class Contextual(NamedTuple):
    """Words in context, for other tasks to stand on."""

    read: Callable[[Sequence[Sequence[str]]], Any]  # sentences [B] of words, each with one or more
    model: Context  # gives the layers [B, S, D] of what was read


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
        trained: gives another run, which this one stands on; weft/run.py sets it.
        untrained: the same from its recipe and vocabularies alone, with a model newly made.
        linewise: whether `answers` gives one answer for each line of a text, whatever stands beside it.
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
    linewise: ClassVar[bool] = False
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
    def look(self) -> None:
        """See that data and model can be had, before a run directory is made; no data is read.

        Raises:
            ConfigError: its sentence begins with the section that is at fault, if one alone is.
            DataError: files are missing.
        """

    @abstractmethod
    def rehearse(self) -> Loss:
        """The loss of a small made-up batch under a model of these parts, so that they fit together."""

    @abstractmethod
    def prepare(self, run: Path, progress: Progress) -> None:
        """Make ready for training: vocabularies (kept in the run), data. Twice does no more than once."""

    @abstractmethod
    def open(self, run: Path) -> None:
        """Make ready for use without the training data: what `prepare` left in the run is read."""

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model with `loss(batch) -> Loss`; after `prepare` or `open`."""

    def file(self, answers: Sequence[str], output: Path) -> bytes:
        """What `weft predict --output` writes of all answers; a line each unless the ending asks for more.

        Args:
            answers: texts of `answers`.
            output: whose ending says in which format.

        Raises:
            ConfigError: the format needs a library that is not there.
        """
        return "".join(f"{answer}\n" for answer in answers).encode("utf-8", "replace")

    def writes(self) -> Vocabulary | None:
        """The vocabulary of what the model writes for a source; None where it writes no text for one."""
        return None

    def common(self) -> Mapping[str, Any]:
        """What runs that search together must share, by the name people have for it (pairs/members.py)."""
        return {}

    @abstractmethod
    def plan(self, seed: int) -> Any:
        """The order of the training batches: `.epoch(number)` gives lists of example numbers."""

    @abstractmethod
    def collate(self, numbers: np.ndarray) -> Any:
        """The training examples of these numbers as a batch with `to(device)` and `target_tokens`.

        With `rows(slice)` too, which gives some of its rows padded as they are (None where it cannot), a
        batch that does not fit into memory is computed in parts with the dropout of the whole.
        """

    @abstractmethod
    def validate(self, model: nn.Module) -> Validation:
        """Scores on the validation data; the model is in evaluation mode, gradients are off."""

    @abstractmethod
    def predictor(self, model: nn.Module) -> Any:
        """The trained model at work, for Python: its `predict(one input)` gives one answer."""

    @abstractmethod
    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """What `weft predict` writes, an answer for each input, as they come.

        Args:
            model: trained, in evaluation mode.
            source: a file of the user, or standard input.
            options: those of `self.options["predict"]` that the user gave.

        Raises:
            ConfigError: options that do not fit together.
            DataError: the source cannot be read. An input that cannot be answered ends nothing: its answer
                says why (each.py).
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
            options: those of `self.options["evaluate"]` that the user gave.
        """

    def inspected(
        self, model: nn.Module, text: str | None, examples: "Examples", options: Mapping[str, Any] = {}
    ) -> "Inspected":
        """What `weft inspect` shows of one input: by `inspected` in the file inspected.py beside this one.

        `text` is None for an example of the run's own, one of `examples` that it was validated on.
        """
        from weft.tasks.shared.inspected.inspected import Inspected, checked

        file = rooms.file_beside(type(self), "inspected")
        if file is None:
            return Inspected(text="" if text is None else checked(text), answer="")
        found: Inspected = file.inspected(self, model, text, examples, options)
        return found

    def contextual(self, model: nn.Module) -> Contextual:
        """Words in context by a model of this task.

        Raises:
            ConfigError: it has none.
        """
        raise ConfigError(
            f"model: embedding.contextual: expected a run that gives words in context, got {self.about()}; "
            "name a run of a task that is trained on running text, such as elmo"
        )

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Everything that is wrong with data files of this task, each with its place.

        Raises:
            ConfigError: this task has no checks.
        """
        raise ConfigError(
            f"{files[0]}: there are no checks for files of this task yet; weft train reads them"
        )
