"""The contract of a task: all that training, scoring and prediction know about data, model and answers.

A Task is the recipe made into objects; its Pipeline has what was learnt from the data and, during training,
the data (Training). Each task is a folder: task.py has these classes, and the other files are named by their
content (model, data, predictor, evaluation, init). Most tasks extend a base in labels/, running_text/
or seq2seq/.
Read next: predictor.py, evaluation.py; translate/task.py, the main task.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import nn

from weft.data.report import Report
from weft.errors import ConfigError, within
from weft.metrics.metric import ItemKind
from weft.nn.embed.contextual import Context
from weft.nn.heads.head import Loss
from weft.search.offered import Offer
from weft.setting_types import check_fields, check_value
from weft.tasks.evaluation import Evaluation, Validation
from weft.tasks.export import ModelExport
from weft.tasks.inspection import NO_EXAMPLES, Examples, Inspection, checked
from weft.tasks.predictor import Predictor
from weft.tasks.reused import ReusedEncoder
from weft.tasks.space import Recipe, Space, usual
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.init import Init

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")

Progress = Callable[[str, float, float | None], None]
"""Called with the current step of the work, how much of it is done, and the total (None if unknown)."""


def silent(what: str, done: float, total: float | None) -> None:
    """A Progress that shows nothing."""


class OtherRun(Protocol):
    """Another run, opened (weft.run)."""

    @property
    def path(self) -> Path:
        """The run's directory."""

    @property
    def pipeline(self) -> "Pipeline":
        """What the run learnt from its data."""

    @property
    def model(self) -> Any:
        """The run's model, in evaluation mode."""


class Implied(NamedTuple):
    """A setting that follows from others where the recipe leaves it out.

    Fields:
        section, key: its place in the recipe.
        value: what it is then.
        why: a sentence, if the recipe may say nothing else; "" if it may.

    Example:
        >>> Implied("training", "precision", "float32", "model.bag.solve computes in float32").key
        'precision'
    """

    section: str
    key: str
    value: str | int
    why: str = ""


class ContextSource(NamedTuple):
    """Words in context, for models of other tasks."""

    read: Callable[[Sequence[Sequence[str]]], object]  # sentences [B] of one or more words
    model: Context  # the layers [B, S, D] of the sentences


class DataSection(Protocol):
    """A recipe's section `data`."""

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""

    def find(self, split: Split) -> object:
        """Check that the files of a split are there; reads as little as possible."""


class RunOpener(Protocol):
    """Opens other runs (weft.run)."""

    def trained(self, run: Path) -> OtherRun:
        """A trained run."""

    def untrained(self, folder: Path) -> OtherRun:
        """A run of which only the recipe and the vocabularies are there, with a new model."""


@dataclass(frozen=True, kw_only=True)
class RequestSettings:
    """What the user of a trained model asks for, besides the recipe.

    Every field that a task's own class adds is an option of the command, under the same name. The command
    line and the server make them, which checks the ranges in their types (setting_types.py).

    Args:
        progress: receives the steps of long work.
        search: settings of the section `decoding` by name, as the user wants them (search/offered.py).

    Attributes:
        asks: the settings that `search` may have.
    """

    asks: ClassVar[Mapping[str, Offer]] = {}
    progress: Progress = field(default=silent, repr=False, compare=False)
    search: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, "--")
        for name, value in self.search.items():
            if name != "search":
                check_value(name, value, self.asks[name].kind)

    @classmethod
    def options(cls) -> list[str]:
        """The names of the options."""
        shared = {one.name for kind in (PredictionSettings, InspectionSettings) for one in fields(kind)}
        drawn = ["sample"] if "temperature" in cls.asks else []
        return [*(one.name for one in fields(cls) if one.name not in shared), *cls.asks, *drawn]

    @classmethod
    def of(cls, given: "RequestSettings | None") -> Self:
        """The given settings, or the defaults if there are none."""
        found = cls() if given is None else given
        if not isinstance(found, cls):
            raise ConfigError(f"settings: expected {cls.__name__}, got {type(given).__name__}")
        return found

    def given(self) -> dict[str, object]:
        """The values that are not the defaults, by name."""
        own = [one for one in fields(self) if one.compare and one.name != "search"]
        pairs = ((one, getattr(self, one.name)) for one in own)
        return {one.name: value for one, value in pairs if value != one.default} | dict(self.search)

    def searched(self) -> dict[str, object]:
        """The changes of the section `decoding`."""
        return dict(self.search)


@dataclass(frozen=True, kw_only=True)
class EnsembleSettings(RequestSettings):
    """What the user asks of several runs together.

    Args:
        ensemble: further runs to average with.
    """

    ensemble: Sequence[OtherRun] = ()


@dataclass(frozen=True, kw_only=True)
class PredictionSettings(RequestSettings):
    """What the user asks of predictions.

    Args:
        batch_rows: inputs computed at once, for tasks that search; None is as the recipe says.
    """

    batch_rows: int | None = None

    def searched(self) -> dict[str, object]:
        rows = {} if self.batch_rows is None else {"batch_rows": self.batch_rows}
        return rows | super().searched()


@dataclass(frozen=True, kw_only=True)
class ScoredSettings(PredictionSettings):
    """What the user asks of answers with a score and a picture.

    Args:
        scores: write the scores too, such as probabilities, quantiles or cosines.
        plot: folder for pictures of the answers, which the command draws.
    """

    scores: bool = False
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(RequestSettings):
    """What the user asks of an evaluation."""


@dataclass(frozen=True, kw_only=True)
class InspectionSettings(RequestSettings):
    """What the user asks of an inspection.

    Args:
        text: the input; None takes one of the examples.
        examples: of the run's validation data.
    """

    text: str | None = None
    examples: Examples = NO_EXAMPLES

    def input(self) -> str:
        """The text, or the example of median length."""
        return checked(self.examples.middle() if self.text is None else self.text)


class PredictExample(NamedTuple):
    """What `weft predict RUN` is given for a first try.

    Fields:
        line: typed on standard input; "" for none.
        words: further arguments.
    """

    line: str
    words: Sequence[str] = ()


GREETING = "The weather is nice today."
LONGEST_EXAMPLE = 200
"""Characters of a line that `weft train` prints to be typed."""


class Scoring(NamedTuple):
    """What is to be scored, and how.

    Fields:
        split: of the recipe's data.
        data: the user's files, to score instead.
        settings: of the class `task.evaluation_settings`.
    """

    split: Split
    data: Path | None
    settings: Any

    @property
    def validation(self) -> bool:
        """Whether it is the validation part, to which settings may have been fitted."""
        return self.data is None and self.split == "valid"

    def title(self, data: Any) -> str:
        """The name of a split of the section `data`, or of the user's files."""
        return str(data.describe(self.split)) if self.data is None else self.data.name


class Task(ABC):
    """What to learn, from which data.

    Attributes:
        data: the section `data`, unless the task overrides `has` and `check_ready`.
        sections: the sections of a recipe that this task reads, and the class that checks each; the
            constructor takes the objects under the same names. A section `decoding` holds settings that may
            be changed when a run is used: `weft predict RUN --set KEY=VALUE`.
        better: for each validation score, whether higher or lower is better.
        unlike: validation scores that are not the metric of their name, and what they are instead.
        evaluation: the class of the result of `evaluate`; callers ask it in advance what it can show.
        prediction_settings, evaluation_settings, inspection_settings: what the user of a trained model may
            ask for; their fields are the options of the commands `predict`, `evaluate` and `inspect`.
        check_options: names of the options of `weft data check` that `check` takes.
        note: how the validation scores are computed; a sentence for the model card.
        evaluates: splits that `evaluate` can score.
        streams: whether the state after a training batch is the state before the next one. The model then has
            `carry_on(batch, state) -> (Loss, State)`, and a batch's `continues` tells whether it continues.
        reads_runs: whether the constructor also takes `runs`, a RunOpener, because the task needs other runs.
        keeps: patterns of the files that `prepare` writes into a run. A run that starts from its weights
            (`training.start`) copies them; if the recipe changes before the first checkpoint, they are made
            again.
        suffixes: extensions of files that belong to this task alone, such as .conllu; `weft data check`
            finds the task by them. "/" takes folders, "*" the files that no other task claims.
        least: items of a single file that training can begin with, as it holds some of them out.
        target_unit: what one target of the training is, for the progress lines.
        samples_readable: whether `inspection` can read the source of a validation sample.
        columns: column names in the header of a table that identify this task.
        recipe: what of the recipe describes the model, kept with the weights; set by the recipe's reader.

    Example:
        >>> from weft.tasks.memory.data import MemoryData
        >>> from weft.tasks.memory.task import MemoryModel, MemoryTask
        >>> task = MemoryTask(data=MemoryData(**{"problem": "copying", "length": 9}), model=MemoryModel())
        >>> task.about(), task.loss_unit
        ('the copying problem, length 9', 'nats')
    """

    data: DataSection
    sections: ClassVar[Mapping[str, type]]
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]]
    unlike: ClassVar[Mapping[str, str]] = {}
    evaluation: ClassVar[type[Evaluation]] = Evaluation
    prediction_settings: ClassVar[type[PredictionSettings]] = PredictionSettings
    evaluation_settings: ClassVar[type[EvaluationSettings]] = EvaluationSettings
    inspection_settings: ClassVar[type[InspectionSettings]] = InspectionSettings
    check_options: ClassVar[Sequence[str]] = ()
    note: ClassVar[str] = ""
    keeps: ClassVar[Sequence[str]] = ("tokenizer*.json",)
    suffixes: ClassVar[Sequence[str]] = ()
    columns: ClassVar[Sequence[str]] = ()
    evaluates: ClassVar[Sequence[Split]] = ("valid", "test")
    least: ClassVar[int] = 1
    streams: bool = False
    reads_runs: ClassVar[bool] = False
    target_unit: ClassVar[str] = "token"
    samples_readable: ClassVar[bool] = True
    recipe: Recipe = MappingProxyType({})
    model_config: Any
    """The section `model`."""

    def __init__(self, *, data: Any = None, model: Any = None) -> None:
        self.data, self.model_config = data, model

    @classmethod
    def knows(cls, file: Path, /) -> bool:
        """Whether the content of a file looks like data of this task."""
        return False

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        """The settings that `weft tune` may change in a recipe of this task, and their ranges."""
        return usual(recipe)

    @classmethod
    def decoding_space(cls, recipe: Recipe) -> Space:
        """Settings of the section `decoding` to try on a trained model, which need no training."""
        return {}

    def evaluation_offers(self, split: Split, data: Path | None) -> tuple[ItemKind, ...]:
        """The kinds of outputs that `evaluate` will offer for a split or other data; reads little."""
        return self.evaluation.offers

    @property
    def validation_offers(self) -> tuple[ItemKind, ...]:
        """The kinds of outputs that validations offer to `training.metrics`; all of `evaluate`, or fewer."""
        return self.evaluation.offers

    @property
    def loss_unit(self) -> str:
        """The unit of the training loss, for figures."""
        return "nats"

    @abstractmethod
    def about(self) -> str:
        """The task and its data, for titles: "en to es, on libreoffice-help"."""

    def has(self, split: Split) -> bool:
        """Whether the recipe names data for this split."""
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that data and model are available, before a run directory is made; reads no data.

        Raises:
            ConfigError: the message starts with the faulty section, if there is only one.
            DataError: files are missing.
        """
        with within("model"):
            self.small_model()
        for split in SPLITS:
            if self.has(split):
                self.data.find(split)

    def implied(self) -> Sequence[Implied]:
        """Settings that follow from others; also those of the section training."""
        return [Implied("training", "max_updates", 1)] if "training" in self.unused() else ()

    def unused(self) -> Sequence[str]:
        """Keys such as `model.encoder` without effect beside others; `training` where nothing is trained."""
        return ()

    @classmethod
    def encoder_of(cls, recipe: Recipe) -> ReusedEncoder | None:
        """The encoder of a run with this recipe, for models of other tasks; None if it has none for them."""
        return None

    @classmethod
    def started(cls, found: ReusedEncoder) -> Mapping[str, object] | None:
        """What a recipe of this task says, by key, if its model starts with an encoder; None if none can.

        A key whose value is None is left out of the recipe.
        """
        return None

    def check_refit(self) -> None:
        """Raise a ConfigError if this recipe cannot be trained on its validation examples at the end.

        A task whose Training has `whole` overrides this; see TrainingSettings.refit.
        """
        raise ConfigError("this task cannot train on its validation examples; leave it out")

    def small_model(self) -> nn.Module:
        """A model for a few made-up words, as a check that its parts fit together."""
        raise NotImplementedError(f"{type(self).__name__}: define small_model, or check_ready without it")

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        """An input for `weft predict`, to be typed as it is; None if there is none.

        Args:
            sources: of validation samples, the shortest first; may be empty.
        """
        line = " ".join((sources[len(sources) // 2] if sources else GREETING).split())
        return PredictExample(
            line if len(line) <= LONGEST_EXAMPLE else line[:LONGEST_EXAMPLE].rpartition(" ")[0]
        )

    @abstractmethod
    def rehearse(self) -> Loss:
        """The loss of a small made-up batch, as a check that the parts of the model fit together."""

    def prepare(self, run: Path, progress: Progress) -> "Pipeline":
        """Read the training data; learn what the run lacks, such as vocabularies, and save it there.

        Args:
            run: the run directory.
            progress: called with the current step.
        """
        corpus, saved = self.read(progress), self.saved(run)
        if saved is None or not saved.exists():
            self.learn(corpus, run, progress)
        pipeline = self.open_for_training(run)
        pipeline.training = self.training(corpus, pipeline, run, progress)
        return pipeline

    def read(self, progress: Progress) -> Any:
        """The training and validation data, for `learn` and `training`; None if these read it themselves."""
        return None

    def learn(self, corpus: Any, run: Path, progress: Progress) -> None:
        """Learn what a model needs, such as vocabularies, and save it in a run; the file of `saved` last."""
        return

    def saved(self, run: Path) -> Path | None:
        """The file that a run has once `learn` has ended; None to learn whenever a training starts."""
        return None

    def training(self, corpus: Any, pipeline: Any, run: Path, progress: Progress) -> "Training":
        """The training data.

        Args:
            corpus: what `read` returned.
            pipeline: opened from the run.
            run: the run directory.
            progress: called with the current step.
        """
        raise NotImplementedError(f"{type(self).__name__}: define training, or prepare without it")

    @abstractmethod
    def open(self, run: Path) -> "Pipeline":
        """Read what `learn` saved in a run, for use without the training data."""

    def open_for_training(self, run: Path) -> "Pipeline":
        """The same before a training, where a task has to read more, or less."""
        return self.open(run)

    @classmethod
    def init(cls, name: str) -> "Init | None":
        """What `weft init` offers for a task of a plugin; None for nothing. Weft's tasks have an init.py.

        Args:
            name: the task as recipes name it.
        """
        return None

    @classmethod
    def check(cls, files: Sequence[Path], /) -> Report:
        """Report every problem in data files of this task, with its place."""
        raise ConfigError(f"{files[0]}: this task has no data checks; weft train reads its files")


class EpochOrder(Protocol):
    """The batches of an epoch, each as an array of example numbers."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> np.ndarray: ...


class BatchOrder(Protocol):
    """The order of the training data."""

    def epoch(self, number: int, /) -> EpochOrder:
        """The batches of an epoch, which are numbered from 0."""


class TrainingBatch(Protocol):
    """A batch, as the model's `loss` reads it."""

    @property
    def target_tokens(self) -> int:
        """What a loss is divided by, and speed counted in."""

    def to(self, device: torch.device, /) -> "TrainingBatch":
        """The batch on a device."""


class Training(ABC):
    """The training data: its order, its batches and its validation.

    Attributes:
        streams: as in Task: whether a batch continues from the state after the previous one.
        solved: whether `Pipeline.model` gives the best weights already, so that no update is made.

    Example:
        >>> from weft.tasks.memory.data import MemoryData
        >>> from weft.tasks.memory.task import MemoryTraining
        >>> data = MemoryData(problem="copying", length=3, symbols=2, batch_rows=5, examples=7)
        >>> training = MemoryTraining(data)
        >>> [len(numbers) for numbers in training.plan(seed=1).epoch(0)]
        [5, 2]
        >>> training.collate(np.arange(5)).target.shape  # [B, T]: 2 symbols, 2 blanks, a sign, 2 answers
        torch.Size([5, 7])
    """

    streams: bool = False
    solved: bool = False

    @abstractmethod
    def plan(self, seed: int) -> BatchOrder:
        """The order of the training batches."""

    @abstractmethod
    def collate(self, numbers: np.ndarray) -> TrainingBatch:
        """A batch of the training examples with these numbers [B].

        What it draws at random comes from the open generator (weft/nn/randomness.py), whose numbers depend on
        the batch alone.

        A batch may also have `rows(slice)`, which returns some of its rows with the same padding, or None if
        it cannot. A batch that does not fit into memory is then computed in parts with the same dropout.
        """

    def check_metric(self, metric: str) -> None:
        """Raise a ConfigError if the validation data cannot give `training.metric`; by default they can."""
        return

    @abstractmethod
    def validate(self, model: Any) -> Validation:
        """Scores on the validation data; the model is in evaluation mode, gradients are off."""

    def whole(self) -> "Training":
        """The same with the validation examples among those to train on; see Task.check_refit."""
        raise NotImplementedError(f"{type(self).__name__}: define whole for training.refit")


class Pipeline(ABC):
    """What a task has learnt from its data (vocabularies, scales) and, during training, the data.

    It makes the model, its predictor and its evaluation. `Task.prepare` and `Task.open` return it complete;
    nothing is added to it later.

    Attributes:
        task: the recipe.
        training: the training data; None unless prepared for training.
        refit: whether the model of the run that was opened was trained on the validation examples too.

    Example:
        >>> from weft.tasks.memory.data import MemoryData
        >>> from weft.tasks.memory.task import MemoryModel, MemoryTask
        >>> task = MemoryTask(data=MemoryData(problem="copying", length=3), model=MemoryModel())
        >>> pipeline = task.open(Path("runs/copying"))  # a memory problem learns nothing from its data
        >>> type(pipeline.predictor(pipeline.model().eval())).__name__
        'Rememberer'
    """

    task: Task
    training: Training | None = None
    refit: bool = False

    def widen(self, run: Path) -> None:
        """Train on the validation examples too from now on; see train/finish.py.

        Args:
            run: where to keep what is learnt from them.
        """
        assert self.training is not None, "opened for use, not prepared for training"
        self.training = self.training.whole()

    def belong_to_refit(self, run: Path) -> None:
        """Belong to a model that was trained on the validation examples too."""
        self.refit = True

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model with `loss(batch) -> Loss`."""

    @abstractmethod
    def predictor(self, model: Any, settings: PredictionSettings | None = None) -> Predictor[Any]:
        """The trained model, ready to answer inputs.

        Args:
            model: trained, in evaluation mode.
            settings: of the class `task.prediction_settings`.

        Raises:
            ConfigError: the settings do not fit together.
        """

    def evaluate(
        self,
        model: Any,
        *,
        split: Split = "test",
        data: Path | None = None,
        settings: EvaluationSettings | None = None,
    ) -> Evaluation:
        """Scores on a split of the recipe's data, or on other files, next to the baselines.

        Args:
            model: trained, in evaluation mode.
            split: the split to score.
            data: the user's files, to score instead.
            settings: of the class `task.evaluation_settings`.
        """
        return self.score(model, Scoring(split, data, self.task.evaluation_settings.of(settings)))

    def score(self, model: Any, asked: Scoring) -> Evaluation:
        """What `evaluate` returns."""
        raise NotImplementedError(f"{type(self).__name__}: define score, or evaluate without it")

    def inspection(self, model: Any, settings: InspectionSettings) -> Inspection:
        """What `weft inspect` shows of one input; heavy imports belong inside.

        Args:
            model: trained, in evaluation mode.
            settings: of the class `task.inspection_settings`.

        Raises:
            ConfigError: an input was given, but the task does not show one.
        """
        if settings.text is not None:
            name = type(self.task).__name__
            raise ConfigError(
                f"inspect: expected no input, as {name} shows only its training, got one; leave it out"
            )
        return Inspection(text="", answer="")

    def model_export(self, model: Any) -> ModelExport | None:
        """The model as graphs that other programs run; None if the task has none.

        Raises:
            ConfigError: a part of the model cannot be a graph.
        """
        return None

    def rows(self) -> Mapping[str, Sequence[str]]:
        """The names of the rows of tables, such as pieces, by the names of weights; others are left out.

        A training that starts with parts of another run (`training.start_parts`) finds rows by them.
        """
        return {}

    def writes(self) -> Vocabulary | None:
        """The vocabulary of the text that the model writes for a source; None if it writes no text."""
        return None

    def common(self) -> Mapping[str, object]:
        """What the members of an ensemble must share, by name (seq2seq/base.py)."""
        return {}

    def contextual(self, model: Any) -> ContextSource:
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
    """The rows of the tables and the output layer of a model over pieces; see `Pipeline.rows`."""
    pieces = [*vocabulary.pieces(range(len(vocabulary))), *more]
    heads = ("head", "head.words", "head.symbols")
    found = {f"{head}.{kind}": pieces for head in heads for kind in ("weight", "bias")}
    found["embed.table.weight"] = pieces
    if source is not None:
        names = pieces if source is vocabulary else [*source.pieces(range(len(source))), *more]
        found["source_embed.table.weight"] = names
    return found


def training_of(pipeline: Pipeline) -> Training:
    """The training data of a task that was prepared for training."""
    assert pipeline.training is not None, "opened for use, not prepared for training"
    return pipeline.training
