"""Classification, made ready: the vocabulary and the classes of the run, and the texts while it is trained.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from weft.data.batching import Batches
from weft.data.labelled import Labelled
from weft.errors import ConfigError, DataError, within
from weft.metrics.f1 import ClassRow, by_class
from weft.metrics.label_sets import by_label
from weft.metrics.temperature import fitted
from weft.models import Predictor
from weft.tasks.classify.data import LabelData
from weft.tasks.classify.evaluation import LabelEvaluation, SeveralEvaluation, evaluate, evaluate_several
from weft.tasks.classify.heads import nats, thresholds
from weft.tasks.classify.predictor import Classifier, order
from weft.tasks.classify.reader import Decided, Reader
from weft.tasks.classify.start import begin
from weft.tasks.contextual import Standing
from weft.tasks.exported import Exported
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.labels.calibration import LabelCalibration, outdated
from weft.tasks.labels.weights import weights_of
from weft.tasks.predictor import Place, separated
from weft.tasks.task import Pipeline, Split, Training, named_rows
from weft.tasks.validation import Sample, Validation, first, samples_of

if TYPE_CHECKING:
    from weft.tasks.classify.task import Classify


class Texts(NamedTuple):
    """Texts and their classes."""

    texts: list[str]
    labels: list[str]
    lines: list[int]  # of the texts in their file
    finer: list[str]  # their subclasses, empty where unknown

    @classmethod
    def of(cls, labelled: Sequence[Labelled], finer: str | None = None) -> "Texts":
        """The columns of these rows, and that of their subclasses."""
        texts, labels = [one.text for one in labelled], [one.label for one in labelled]
        subclasses = [one.cells.get(finer or "", "").strip() for one in labelled]
        return cls(texts, labels, [one.number for one in labelled], subclasses)

    def at(self, numbers: Sequence[int]) -> "Texts":
        """Some of them."""
        texts, labels, finer = (
            [column[n] for n in numbers] for column in (self.texts, self.labels, self.finer)
        )
        return Texts(texts, labels, [self.lines[n] for n in numbers], finer)


class ClassifyTraining(Training):
    """The texts of a training.

    Args:
        data: the recipe's section.
        reader: numbers of tokens and classes.
        train, valid: labelled texts.
        most: positions of the model; longer training texts are left out. None for no limit.
    """

    def __init__(
        self, data: LabelData, reader: Reader, train: Texts, valid: Texts, most: int | None = None
    ) -> None:
        rows = reader.encode(train.texts)
        fit = [n for n, row in enumerate(rows) if most is None or len(row) <= most]
        self.left_out = len(rows) - len(fit)
        self.train = train.at(fit)
        self.rows = [rows[n] for n in fit]
        self._data = data
        self._reader = reader
        self._valid = valid

    def plan(self, seed: int) -> Batches:
        """Batches of texts of similar length."""
        lengths = np.array([[max(1, len(row))] * 2 for row in self.rows])
        rows = self._data.batch_rows or None
        return Batches(lengths, max_tokens=self._data.batch_tokens, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        chosen = [int(number) for number in numbers]
        some = self.train.at(chosen)
        return self._reader.batch([self.rows[n] for n in chosen], some.labels, some.texts, some.finer)

    def validate(self, model: nn.Module) -> Validation:
        """Loss, accuracy and mean F1; a text that the model cannot read is wrong, and not in the loss."""
        assert isinstance(model, Predictor)
        texts, labels, lines, _ = self._valid
        found = Classifier(model, self._reader, self._data).attempts_at(texts)
        decided, wrong = separated(found, (Place("validation", line) for line in lines))
        outputs = ["" if one is None else one.label for one in decided]
        loss, rows = self._judged(decided, outputs)
        scores = {
            "loss": float(loss.mean()) if len(loss) else float("nan"),
            "accuracy": sum(a == b for a, b in zip(outputs, labels, strict=True)) / len(labels),
            "f1": sum(row.f1 for row in rows) / len(rows),
        }
        samples = [Sample(texts[n], labels[n], outputs[n]) for n in samples_of(len(texts))]
        return Validation(scores, samples, notes=first(wrong))

    def _judged(
        self, decided: Sequence[Decided | None], outputs: Sequence[str]
    ) -> tuple[np.ndarray, list[ClassRow]]:
        """The nats of each text that was read, and a row of scores for each class."""
        labels, reader = self._valid.labels, self._reader
        read = [(one.probs, label) for one, label in zip(decided, labels, strict=True) if one is not None]
        targets = reader.targets([label for _, label in read]).numpy()
        if reader.separator is not None:
            some = {"separator": reader.separator, "labels": reader.classes}
            loss = nats(np.array([probs for probs, _ in read]), targets) if read else np.zeros(0)
            return loss, by_label(outputs, labels, **some)  # type: ignore[arg-type]
        # a class that training never saw has no probability and no part in the loss
        probs = [float(probs[n]) for (probs, _), n in zip(read, targets, strict=True) if n >= 0]
        return -np.log(np.maximum(probs, 1e-30)), by_class(outputs, labels)


class ClassifyPipeline(Pipeline):
    """The vocabulary and the classes of a run.

    Args:
        task: the recipe.
        reader: numbers of tokens and classes.
        standing: gives words in context by the frozen model of another run; None for none.
        training: the texts; None for use alone.
        run: where the temperature of the probabilities is kept; None in training.
    """

    task: "Classify"
    training: ClassifyTraining | None

    def __init__(
        self,
        task: "Classify",
        reader: Reader,
        *,
        standing: Standing | None = None,
        training: ClassifyTraining | None = None,
        run: Path | None = None,
    ) -> None:
        self.task = task
        self.reader = reader
        self._run = run
        self.training = training
        self._standing = standing

    def model(self) -> Predictor:
        """A new model; where training begins, with the given vectors or as naive Bayes."""
        context = self._standing.model() if self._standing else None
        model_config, classes, weights = self.task.model_config, self.reader.classes, list[float]()
        if self.training is not None:
            weights = weights_of(model_config.class_weights, classes, self.training.train.labels)
        several = self.reader.separator is not None
        model = model_config.build(
            self.reader.num_items,
            len(classes),
            context,
            weights=weights,
            several=several,
            inside=self.reader.inside,
        )
        if self.training is not None:
            with torch.no_grad():
                begin(model, model_config, self.reader, self.training.rows, *self.training.train[:2])
        return model

    def rows(self) -> Mapping[str, Sequence[str]]:
        """See Pipeline.rows; the classes are the rows of the head."""
        subclasses = [" ".join(pair) for pair in self.reader.finer]
        of_head = dict.fromkeys(("head.weight", "head.bias"), subclasses or self.reader.classes)
        if self.reader.items is not None:
            return of_head
        found = named_rows(self.reader.vocabulary)
        if self._standing is not None:
            found["embed.words.table.weight"] = found.pop("embed.table.weight")
        return {**found, **of_head}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Classifier:
        """The trained model: `predict(text)` answers with a class.

        Args:
            model: in evaluation mode.
            options: `scores`; `ensemble`, opened runs that decide along; each reads texts its own way.

        Raises:
            ConfigError: a member is another kind of run, or has other classes; or it is to be drawn.
        """
        assert isinstance(model, Predictor)
        members = options.get("ensemble", ())
        if members and options.get("plot"):
            raise ConfigError("--plot: shows the attention of one model; leave out --plot or --ensemble")
        others = [self._joined(member) for member in members]
        scores = bool(options.get("scores"))
        return Classifier(model, self.reader, self.task.data, others=others, scores=scores)

    def _joined(self, member: Any) -> Classifier:
        if not isinstance(member.pipeline, ClassifyPipeline):
            raise ConfigError(f"--ensemble {member.path}: expected a run of the task classify; leave it out")
        other = member.pipeline.predictor(member.model)
        with within(f"--ensemble {member.path}"):
            order(other.reader.classes, self.reader.classes)
        return other  # type: ignore[no-any-return]

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> LabelEvaluation | SeveralEvaluation:
        """Scores on a split or another file, with the baselines where the training texts are still there.

        Raises:
            ConfigError: a member of an ensemble learnt from texts of the split.
        """
        source = self.task.data
        found = list(source.texts(split) if data is None else source.at(data))
        if not found:
            raise DataError(f"{data}: expected at least one text, got none")
        if options.get("calibrate"):
            self._calibrate(model)
        train = None
        with suppress(DataError):
            train = Texts.of(list(source.texts("train")))
        title = source.describe(split) if data is None else data.name
        members = options.get("ensemble", ())
        for member in members if data is None else ():
            if isinstance(member.pipeline, ClassifyPipeline):
                self._check_unseen(member, split)
        title += f", {1 + len(members)} runs together" if members else ""
        title += outdated(self._run)
        classifier = self.predictor(model, {"ensemble": members})
        texts, labels, lines, _ = Texts.of(found)
        known = None if train is None else train[:2]
        judge = evaluate if self.reader.separator is None else evaluate_several
        return judge(classifier, texts, labels, lines=lines, title=title, train=known)

    def _calibrate(self, model: nn.Module) -> None:
        """Fit the temperature, or the thresholds, to the validation texts, and keep them in the run."""
        assert isinstance(model, Predictor) and self._run is not None
        several = self.reader.separator is not None
        found = self.task.data.texts("valid")
        valid = [one for one in found if several or self.reader.number(one.label) >= 0]
        self.reader.temperature = 1.0
        decided = Classifier(model, self.reader, self.task.data).classify([one.text for one in valid])
        probs = np.stack([one.probs for one in decided])
        targets = self.reader.targets([one.label for one in valid]).numpy()
        if several:
            self.reader.thresholds = thresholds(probs, targets)
        else:
            self.reader.temperature = fitted(np.log(np.maximum(probs, 1e-30)), targets)
        limits = self.reader.thresholds if several else ()
        LabelCalibration(self.reader.temperature, limits).save(self._run)

    def _check_unseen(self, member: Any, split: Split) -> None:
        """Refuse a member of an ensemble whose training texts may hold those of the split."""
        if member.task.data.parts(split) != self.task.data.parts(split):
            raise ConfigError(
                f"--ensemble {member.path}: has a different split, so it may have been "
                "trained on texts tested here; name a run with the same section data"
            )

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.classify.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> Exported:
        from weft.tasks.classify.exported import exported

        return exported(self, model)
