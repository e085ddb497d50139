"""The base of all tasks that write a sequence for a source: text, picture or sound in, text or picture out.

A task says how its data is read, what is learnt from it and how a model is built; the rest stands here once.
Read next: pairs.py, for text on both sides; ../caption/task.py, for pictures.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import nn

from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.evaluation import Evaluation
from weft.tasks.seq2seq.decoding import Decoding, DecodingSettings, GenerationEvaluationSettings
from weft.tasks.seq2seq.glossary import read_glossary
from weft.tasks.seq2seq.scoring import GivenScores
from weft.tasks.task import (
    EvaluationSettings,
    OtherRun,
    Pipeline,
    Progress,
    Split,
    Task,
    Training,
    named_rows,
)
from weft.text.vocabulary import Vocabulary

VOCABULARY = "tokenizer.json"

Corpus = TypeVar("Corpus")
"""What `read` returns: the training and validation data."""

Examples = TypeVar("Examples")
"""What is scored: sources with their references."""


class Seq2SeqTask(Task, ABC, Generic[Corpus]):
    """Trains a model to write the target for a source.

    Args:
        data: where the data is, and how it becomes batches.
        model: encoder and decoder.
        decoding: search settings for the trained model; validation is greedy unless the task says otherwise.
    """

    model_config: Any
    decoding: Decoding

    def __init__(self, *, data: Any, model: Any, decoding: Decoding) -> None:
        self.data = data
        self.model_config = model
        self.decoding = decoding

    @abstractmethod
    def small_model(self) -> Generator:
        """A model for a made-up vocabulary, as a check that its parts fit together."""

    @abstractmethod
    def small_batch(self, model: Generator) -> Any:
        """A batch of two made-up examples for it."""

    @abstractmethod
    def read(self, progress: Progress) -> Corpus:
        """The training and validation data."""

    @abstractmethod
    def learn(self, corpus: Corpus, run: Path, progress: Progress) -> None:
        """Learn what a model needs, such as vocabularies, and save it in a run; `saved` last."""

    @abstractmethod
    def open(self, run: Path) -> "Seq2SeqPipeline[Any]": ...

    @abstractmethod
    def training(self, corpus: Corpus, pipeline: Any, run: Path, progress: Progress) -> Training:
        """The training data, for a pipeline that was opened from the run."""

    def saved(self, run: Path) -> Path:
        """The file that `learn` writes last."""
        return run / VOCABULARY

    def check_ready(self) -> None:
        if self.decoding.glossary is not None:
            read_glossary(self.decoding.glossary)
        super().check_ready()

    def rehearse(self) -> Loss:
        model = self.small_model()
        return model.loss(self.small_batch(model))

    def prepare(self, run: Path, progress: Progress) -> "Seq2SeqPipeline[Any]":
        """Read the data; learn from it unless the run has what is learnt."""
        corpus = self.read(progress)
        if not self.saved(run).exists():
            self.learn(corpus, run, progress)
        pipeline = self.open(run)
        pipeline.training = self.training(corpus, pipeline, run, progress)
        return pipeline


class Seq2SeqPipeline(Pipeline, ABC, Generic[Examples]):
    """What a task has learnt: at least the vocabulary of the targets.

    Args:
        task: the recipe.
        target: the vocabulary of the targets.
    """

    def __init__(self, task: Any, target: Vocabulary) -> None:
        self.task = task
        self.target = target
        self.decoding: Decoding = task.decoding

    @abstractmethod
    def model(self) -> Generator: ...

    @abstractmethod
    def examples_of(self, split: Split, data: Path | None) -> Examples:
        """The examples to score: a split of the recipe, or the user's files."""

    @abstractmethod
    def score(
        self,
        model: Generator,
        examples: Examples,
        split: Split,
        data: Path | None,
        settings: EvaluationSettings,
    ) -> Evaluation:
        """Write a target for each source, and score it beside the baselines."""

    def given_scores(
        self, model: Generator, examples: Examples, settings: GenerationEvaluationSettings
    ) -> GivenScores:
        """The log-probability of each line of the file that the setting `score` names.

        Raises:
            ConfigError: the task does not write lines of text.
        """
        raise ConfigError(f"--score: {self.task.about()} has no lines of text to score; leave it out")

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.target)

    def writes(self) -> Vocabulary | None:
        return self.target

    def common(self) -> Mapping[str, object]:
        return {"vocabulary": pieces(self.target)}

    def members(self, settings: DecodingSettings) -> list[Generator]:
        """The further models of an ensemble.

        Raises:
            ConfigError: one of them reads or writes something else.
        """
        return [joined(member, self) for member in settings.ensemble]

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        settings: EvaluationSettings | None = None,
    ) -> Evaluation:
        """The scores of what the model writes for a split, or for the user's files.

        With the setting `score`, a file, the result is the log-probability of each of its lines instead.
        """
        assert isinstance(model, Generator)
        asked = self.task.evaluation_settings.of(settings)
        examples = self.examples_of(split, data)
        if isinstance(asked, GenerationEvaluationSettings) and asked.score is not None:
            return self.given_scores(model, examples, asked)
        return self.score(model, examples, split, data, asked)


def joined(member: OtherRun, pipeline: Pipeline) -> Generator:
    """The member's model, if it reads and writes the same under the same numbers as the first run.

    Args:
        member: another run.
        pipeline: of the first run; what both must share is what its `common` gives.

    Raises:
        ConfigError: the member has another task, other vocabularies or another input.
    """
    model, own, its = member.model, pipeline.common(), member.pipeline.common()
    if not isinstance(model, Generator) or its.keys() != own.keys():
        raise ConfigError(
            f"--ensemble {member.path}: is a run of another kind of task than the first; leave it out"
        )
    for what, first in own.items():
        other = its[what]
        if other == first:
            continue
        if isinstance(first, list) and isinstance(other, list):
            raise ConfigError(
                f"--ensemble {member.path}: its {what} ({len(other):,} pieces) is not that of the "
                f"first run ({len(first):,} pieces); an ensemble needs runs trained on the same data with "
                "the same section data.vocabulary"
            )
        raise ConfigError(
            f"--ensemble {member.path}: its {what} is {other}, that of the first run {first}; an ensemble "
            "needs runs that read and write the same"
        )
    return model


def pieces(vocabulary: Vocabulary) -> list[str]:
    """Every piece in the order of its number."""
    return vocabulary.pieces(range(len(vocabulary)))
