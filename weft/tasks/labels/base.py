"""The bases of tasks that predict labels: a class for a text or a picture, tags for words, symbols.

Below them: the scores of classes, and how much each class weighs in the loss of training.
Read next: ../images/task.py, a short one; ../tag/task.py, on texts; calibration.py, how sure answers are.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from weft.data.vectors import read_vectors
from weft.errors import ConfigError, DataError
from weft.figures.records import Figure
from weft.masks import fill, grid, to_device
from weft.metrics.f1 import ClassRow
from weft.metrics.metric import ItemKind, MetricScore
from weft.metrics.scored import ComparedOutputs
from weft.models import Labeller
from weft.setting_types import DropoutRate, Size, check_fields
from weft.store import digests
from weft.tasks.abilities import HasVectors
from weft.tasks.contextual import PretrainedContext
from weft.tasks.evaluation import Evaluation
from weft.tasks.labels.calibration import Confidence, LabelCalibration, note
from weft.tasks.labels.solver import PENALTIES, Design, solve
from weft.tasks.task import (
    DataSection,
    EvaluationSettings,
    Pipeline,
    PredictionSettings,
    Progress,
    RunOpener,
    ScoredSettings,
    Scoring,
    Split,
    Task,
    Training,
)
from weft.wording import close_name


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings(EvaluationSettings):
    """What the user asks of the scores of labels of texts."""

    calibrate: bool = False  # fit the probabilities to the validation texts first, and keep that


class LabelBatch(NamedTuple):
    """A batch of sequences and their targets, for weft.models.Labeller.

    Example:
        >>> source = torch.tensor([[4, 5], [6, 0]])  # [B, S]
        >>> batch = LabelBatch(source, source > 0, target=torch.tensor([1, 0]), target_tokens=2)
        >>> batch.rows(slice(1)).source.tolist()
        [[4, 5]]
    """

    source: Any  # [B, S] tokens, or another input of the embedding; has to(device)
    source_mask: Tensor  # [B, S] bool
    target: Tensor  # [B] classes, or [B, S] tags
    target_tokens: int  # real targets

    def to(self, device: torch.device) -> "LabelBatch":
        """The same batch on a device."""
        return to_device(self, device)

    def rows(self, chosen: slice) -> "LabelBatch | None":
        """Some rows with the batch's padding; None if the source is not a single tensor."""
        if not isinstance(self.source, Tensor):
            return None
        mask, target = self.source_mask[chosen], self.target[chosen]
        return LabelBatch(
            self.source[chosen], mask, target, int(mask.sum()) if target.dim() > 1 else len(target)
        )

    def filled(self) -> "LabelBatch":
        """The same batch with masked columns, as in PairBatch; a masked row would count as a label."""
        rows, columns = len(self.source_mask), grid(self.source_mask.shape[1])
        if isinstance(self.source, Tensor) and self.source.dim() == 2 and not self.source.is_floating_point():
            source: Any = fill(self.source, rows, columns)
        elif hasattr(self.source, "filled"):
            source = self.source.filled(columns)
        else:
            return self
        target = fill(self.target, rows, columns) if self.target.dim() > 1 else self.target
        return LabelBatch(source, fill(self.source_mask, rows, columns), target, self.target_tokens)


@dataclass(frozen=True, kw_only=True)
class WordVectorSettings:
    """A recipe's `model.embedding` of words that may have given vectors and vectors in context.

    Args:
        dropout: share of features that is set to zero in training.
        contextual: a run of the task elmo or masked, whose vectors of words in context are appended.
        tuned: train the model of that run further too; otherwise it stays as it is.
    """

    size: Size
    vectors: Path | None = None
    fixed: bool = False
    contextual: Path | None = None
    tuned: bool = False
    dropout: DropoutRate = 0.3

    def __post_init__(self) -> None:
        check_fields(self)
        if self.tuned and self.contextual is None:
            raise ConfigError("tuned: expected contextual, the run whose model is trained further")
        if self.fixed and self.vectors is None:
            raise ConfigError("fixed: true needs vectors; set vectors, or leave fixed out")


D = TypeVar("D", bound=DataSection)
M = TypeVar("M")
E = TypeVar("E")


class LabelTask(Task, Generic[D, M]):
    """A task that predicts labels."""

    data: D
    model_config: M
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "f1": "higher",
    }


class SolvedTraining(Training):
    """Texts of which a linear model is solved at once, if the recipe asks for one."""

    penalties: ClassVar[Sequence[float]] = PENALTIES
    penalty: float | None = None  # of the recipe, or the one that was chosen; None before
    progress: Progress

    @abstractmethod
    def designs(self) -> tuple[Design, Design]:
        """The training texts, and the validation texts that choose the penalty."""

    def solve(self, model: Labeller, *others: Labeller) -> Labeller:
        """Fill linear models with their best weights; the one that the validation texts prefer."""
        models, designs = (model, *others), self.designs()
        found = [solve(one, *designs, self.penalty, self.penalties) for one in models]
        best = min(range(len(found)), key=lambda number: found[number].loss)
        self.penalty = found[best].penalty
        learnt = sum(one.numel() for one in models[best].parameters() if one.requires_grad)
        self.progress(f"the linear model is solved: {learnt:,} parameters, {found[best]}", 0, 0)
        return models[best]


class TextLabelTask(LabelTask[D, M]):
    """A task that predicts labels of texts, whose words may have given vectors and vectors in context."""

    reads_runs = True
    prediction_settings: ClassVar[type[PredictionSettings]] = ScoredSettings
    evaluation_settings: ClassVar[type[EvaluationSettings]] = CalibrationSettings

    def __init__(self, *, data: D, model: M, runs: RunOpener) -> None:
        super().__init__(data=data, model=model)
        self.runs = runs

    @property
    @abstractmethod
    def embedding(self) -> WordVectorSettings:
        """The recipe's `model.embedding`."""

    @cached_property
    def vectors(self) -> Mapping[str, np.ndarray]:
        """The given vectors of words, of a file or of a run; none without."""
        given = self.embedding.vectors
        if given is None:
            return {}
        if not given.is_dir():
            return read_vectors(given)[0]
        other = self.runs.trained(given)
        found = other.pipeline.predictor(other.model)
        if not isinstance(found, HasVectors):
            raise ConfigError(
                f"model: embedding.vectors: expected a file or a run with word vectors, got the run {given} "
                "without; train one: weft init embeddings"
            )
        return dict(zip(found.words, found.matrix, strict=True))

    def check_refit(self) -> None:
        """Any of them can."""

    def check_ready(self) -> None:
        super().check_ready()
        if self.embedding.contextual is not None:
            PretrainedContext.check(self.embedding.contextual, self.runs)
        self.check_vectors()

    def check_vectors(self) -> None:
        """Check that the given vectors have the size of the table that they fill."""
        size, there = self.embedding.size, len(next(iter(self.vectors.values()), ()))
        if self.embedding.vectors is not None and there != size:
            raise ConfigError(
                f"model: embedding.size is {size}, but the vectors of {self.embedding.vectors} have {there} "
                f"numbers; set embedding.size: {there}"
            )

    @abstractmethod
    def pipeline(self, run: Path, context: PretrainedContext | None) -> "TextLabelPipeline[Any]":
        """What a run has learnt; `context` gives words in context by the model of another run."""

    def open(self, run: Path) -> "TextLabelPipeline[Any]":
        """Read what `learn` saved in a run, and its calibration."""
        named = self.embedding.contextual is not None
        found = self.pipeline(run, PretrainedContext.open(self.runs, run) if named else None)
        found.run = run
        found.use(LabelCalibration.load(run))
        return found

    def open_for_training(self, run: Path) -> "TextLabelPipeline[Any]":
        """The same without the calibration, with the words in context of the recipe's run, copied into it."""
        source = self.embedding.contextual
        if (given := self.embedding.vectors) is not None:  # read before, and a file of this training too
            digests.note(given / "model.safetensors" if given.is_dir() else given)
        return self.pipeline(run, None if source is None else PretrainedContext.begin(source, self.runs, run))


class TextLabelPipeline(Pipeline, Generic[E]):
    """What a task that predicts labels of texts has learnt."""

    run: Path | None = None  # where the calibration of the probabilities is kept; None in training

    @abstractmethod
    def examples(self, split: Split, file: Path | None = None) -> list[E]:
        """The texts of a split, or of the user's file, with their labels; a DataError if there are none."""

    @abstractmethod
    def valid_texts(self) -> Iterable[str]:
        """The validation texts, as a user would type them."""

    @abstractmethod
    def title(self, asked: Scoring) -> str:
        """The name of what is scored."""

    @abstractmethod
    def use(self, calibration: LabelCalibration) -> None:
        """Answer with the temperature, or the thresholds, that were fitted to the validation texts."""

    @abstractmethod
    def calibrate(self, model: Any) -> None:
        """Fit the temperature, or the thresholds, to the validation texts, and keep them in the run."""

    @abstractmethod
    def scores(
        self, model: Any, found: list[E], train: list[E] | None, title: str, settings: Any
    ) -> Evaluation:
        """The scores of a model on texts, with baselines unless `train` is None, as they are gone."""

    def score(self, model: Any, asked: Scoring) -> Evaluation:
        """Scores on a split or another file, with the baselines where the training texts are still there."""
        found, train = self.examples(asked.split, asked.data), None
        with suppress(DataError):
            train = self.examples("train")
            if self.refit:
                train += self.examples("valid")
        if asked.settings.calibrate:
            if self.refit:
                again = f"weft train {self.run}/recipe.yaml --run {self.run} training.refit="
                raise ConfigError(
                    "--calibrate: the model was trained on the validation examples too (training.refit), so "
                    f"they cannot show how sure it may be; {again}false brings back the model before, "
                    f"without training; calibrate that one, and {again}true keeps its calibration"
                )
            self.calibrate(model)
        title = self.title(asked) + note(self.run, on_validation=asked.validation)
        scored = self.scores(model, found, train, title, asked.settings)
        if asked.data is None or train is None:
            return scored
        known = set(map(self.text_of, train))
        return replace(scored, again=sum(self.text_of(one) in known for one in found))  # type: ignore[type-var]

    @abstractmethod
    def text_of(self, example: E) -> str:
        """The text of an example, to find it among those of the training."""


@dataclass(frozen=True, kw_only=True)
class ClassEvaluation(Evaluation):
    """Scores of answers of which each is one class: of texts and pictures, or the tags of words."""

    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] reference by answer
    seconds: float
    confidence: Confidence | None = None
    unseen: Sequence[str] = ()  # classes that training never saw
    classes: ClassVar[str] = "classes"  # what a class is called
    shows: ClassVar[str] = "confusion matrix"
    offers: ClassVar[tuple[ItemKind, ...]] = ("labels", "probabilities")

    @property
    def accuracy(self) -> MetricScore:
        """The share of right answers."""
        return self.scores[0].score

    def notes(self) -> list[str]:
        unseen = f"  {self.classes} that training never saw (always wrong): {', '.join(self.unseen)}"
        sure = self.confidence.lines(self.accuracy.value) if self.confidence else []
        return [*([unseen] if self.unseen else []), *sure]

    def cautions(self) -> list[str]:
        """Also that no class of the data is one of the training's, as where 1 is written 1.0."""
        true = [label for label, row in zip(self.labels, self.matrix, strict=True) if row.sum()]
        if not set(true) <= set(self.unseen):
            return super().cautions()
        given = sorted({label for label in self.labels if label not in true})
        return [
            f"no class of this data ({', '.join(true)[:80]}) occurred in training, so every answer is wrong: "
            f"the answers are {', '.join(given)[:80]}; write the classes as in training"
        ]

    def facts(self) -> dict[str, Any]:
        return {
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
            **(self.confidence.facts() if self.confidence else {}),
            "seconds": self.seconds,
        }

    def figure(self, name: str) -> "Figure":
        """Which class is taken for which: a heat map with counts."""
        from weft.figures.alignment import confusion_map

        title = f"{name}\n{self.title}, accuracy {self.accuracy.value:.4f}"
        return confusion_map(self.matrix, self.labels, title=title)


def probabilities_of(
    classes: Sequence[str],
    probs: Iterable[np.ndarray | None],
    labels: Sequence[str] | Sequence[frozenset[str]],
    train: Sequence[str] | Sequence[frozenset[str]] | None,
    groups: np.ndarray | None = None,
) -> ComparedOutputs:
    """Probabilities of classes that metrics can score, beside those that the frequencies in training give.

    An item without an answer, None, counts as knowing nothing. An item may have several right `labels`;
    resamples draw the items of one of the `groups` [N] together.
    """
    known = [{one} if isinstance(one, str) else one for one in labels]
    names = [*classes, *sorted(set().union(*known) - set(classes))]  # what training never saw has 0
    outputs = np.zeros((len(known), len(names)))
    for row, one in zip(outputs, probs, strict=True):
        row[: len(classes)] = 1 / len(classes) if one is None else one
    true = np.array([[name in one for name in names] for one in known])
    several = any(not isinstance(one, str) for one in labels)
    baselines = {}
    if train:
        counts = Counter(name for one in train for name in ([one] if isinstance(one, str) else one))
        shares = np.array([counts[name] / len(train) for name in names])
        baselines["frequencies in training"] = np.tile(shares, (len(known), 1))
    references = true if several else true.argmax(1)
    return ComparedOutputs(outputs, references, baselines=baselines, reads="probabilities", groups=groups)


ClassWeights = Literal["none", "balanced"] | Mapping[str, float]
"""A setting of a model: all classes alike, all of the same total weight, or the user's own weights."""


def check_weights(given: ClassWeights) -> None:
    """Check the user's own weights."""
    for label, weight in given.items() if isinstance(given, Mapping) else ():
        if not weight > 0:
            raise ConfigError(f"class_weights: expected a number above 0 for {label!r}, got {weight:g}")


def weights_of(given: ClassWeights, classes: Sequence[str], seen: Iterable[str]) -> list[float]:
    """The weight of each class; empty if each counts 1.

    Example:
        >>> weights_of("balanced", ["a", "b"], "aaaaaabb"), weights_of({"b": 3.0}, ["a", "b"], "aaaaaabb")
        ([0.6666666666666666, 2.0], [1.0, 3.0])
    """
    if isinstance(given, Mapping):
        for label in given:
            if label not in classes:
                near = close_name(label, classes)
                shown = f"did you mean {near!r}?" if near else f"they are {', '.join(classes)[:200]}"
                raise ConfigError(
                    f"model.class_weights: expected classes of the training data, got {label!r}; {shown}"
                )
        return [given.get(label, 1.0) for label in classes]
    if given == "none":
        return []
    counts = Counter(seen)
    return [counts.total() / (len(classes) * max(1, counts[label])) for label in classes]
