"""Classification: a text has one of several classes.

Read next: data.py, model.py, reader.py, predictor.py, evaluation.py.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from weft.data.batching import Batches
from weft.data.guess import holds_texts
from weft.data.labelled import LabelledExample, text_columns
from weft.data.report import Report
from weft.data.several import called
from weft.data.tables import is_table
from weft.data.vectors import coverage
from weft.errors import ConfigError, DataError, within
from weft.metrics.accuracy import Accuracy
from weft.metrics.calibration import fitted, heated
from weft.metrics.f1 import F1
from weft.metrics.naive_bayes import NaiveBayes
from weft.metrics.scored import ComparedOutputs
from weft.models import Labeller
from weft.nn.embed.contextual import InContext
from weft.nn.embed.grams import Grams, GramTable
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Loss
from weft.nn.positions import most_positions
from weft.store.digests import WHOLE
from weft.tasks.classify.data import (
    LabelData,
    LabelledTexts,
    check_labels,
    check_subclasses,
    columns,
    names_of,
    read_as,
)
from weft.tasks.classify.evaluation import (
    LabelEvaluation,
    SeveralEvaluation,
    classified,
    evaluate,
    evaluate_several,
)
from weft.tasks.classify.model import LabelModel, TextEmbedding, nats, thresholds
from weft.tasks.classify.predictor import TextClassifier, export_classifier, inspect_text, order
from weft.tasks.classify.reader import LabelDecision, LabelReader
from weft.tasks.contextual import PretrainedContext, whole_words
from weft.tasks.evaluation import Evaluation, Sample, Validation, first, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.labels.base import (
    CalibrationSettings,
    ClassWeights,
    LabelBatch,
    SolvedTraining,
    TextLabelPipeline,
    TextLabelTask,
    probabilities_of,
    weights_of,
)
from weft.tasks.labels.calibration import ClassThreshold, LabelCalibration, threshold_of
from weft.tasks.labels.solver import Design
from weft.tasks.labels.splits import small_validation
from weft.tasks.reused import ReusedEncoder
from weft.tasks.seq2seq.batch_search import pad
from weft.tasks.space import Range, Recipe, Space, usual
from weft.tasks.task import (
    EnsembleSettings,
    Implied,
    InspectionSettings,
    OtherRun,
    Pipeline,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Split,
    named_rows,
    silent,
)
from weft.text.loading import load_vocabulary
from weft.wording import plural

LONGEST = 400
"""Tokens of a text that a model with an encoder reads, unless the recipe says otherwise."""

UNLIMITED = 10**9
"""Tokens of a text that a bag reads, unless the recipe says otherwise: all."""


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(EnsembleSettings, ScoredSettings):
    """What the user asks of classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ensemble and self.plot is not None:
            raise ConfigError(
                "--pictures: shows the attention of one model; leave out --pictures or --ensemble"
            )


@dataclass(frozen=True, kw_only=True)
class ClassifierEvaluationSettings(EnsembleSettings, CalibrationSettings):
    """What the user asks of the scores of classes."""


class ClassifyTraining(SolvedTraining):
    """The texts of a training.

    Attributes:
        class_weights: those of the recipe, or the ones that were chosen.
        vectors: given ones of words.
    """

    class_weights: ClassWeights | Literal["best"] = "none"
    vectors: Mapping[str, np.ndarray] = MappingProxyType({})

    def __init__(
        self,
        data: LabelData,
        reader: LabelReader,
        train: LabelledTexts,
        valid: LabelledTexts,
        most: int | None = None,
        progress: Progress = silent,
    ) -> None:
        rows = reader.encode(train.texts)
        fit = [n for n, row in enumerate(rows) if most is None or len(row) <= most]
        self.left_out = len(rows) - len(fit)
        self.train = train.at(fit)
        self.rows = [rows[n] for n in fit]
        self._data = data
        self._reader = reader
        self._valid = valid
        self.progress = progress
        self._most = most
        if reader.items is not None:
            self.solved, self.penalty = reader.items.bag.solve, reader.items.bag.penalty

    def joined(self) -> LabelledTexts:
        """All texts but those of a class that training never saw."""
        known = [n for n, label in enumerate(self._valid.labels) if not self._reader.unknown([label])]
        return self.train.joined(self._valid.at(known))

    def whole(self, reader: LabelReader | None = None) -> "ClassifyTraining":
        given = reader or self._reader
        found = ClassifyTraining(self._data, given, self.joined(), self._valid, self._most, self.progress)
        found.penalty, found.class_weights, found.vectors = self.penalty, self.class_weights, self.vectors
        return found

    def designs(self) -> tuple[Design, Design]:
        reader, train = self._reader, self.train
        several = reader.separator is not None
        numbers = [n for n, one in enumerate(self._valid.labels) if several or reader.number(one) >= 0]
        valid = self._valid.at(numbers)
        parts = ((self.rows, train), (reader.encode(valid.texts), valid))
        learnt, choosing = (reader.design(rows, one.labels, one.texts, one.finer) for rows, one in parts)
        return learnt._replace(vectors=reader.vectors_of_items(self.vectors)), choosing

    def plan(self, seed: int) -> Batches:
        """Batches of texts of similar length."""
        lengths = np.array([[max(1, len(row))] * 2 for row in self.rows])
        rows = self._data.batch_rows or None
        return Batches(lengths, max_tokens=self._data.batch_tokens, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        chosen = [int(number) for number in numbers]
        some = self.train.at(chosen)
        return self._reader.batch([self.rows[n] for n in chosen], some.labels, some.texts, some.finer)

    def validate(self, model: Labeller) -> Validation:
        """Loss, accuracy and mean F1; a text that the model cannot read is wrong, and not in the loss."""
        texts, labels = self._valid[:2]
        classifier = TextClassifier(model, self._reader, self._data)
        found, wrong, _ = classified(classifier, self._valid, "validation")
        decided = [None if one is None else one.decided for one in found]
        outputs = ["" if one is None else one.label for one in decided]
        loss, compared = self._losses(decided), self._compared(decided, outputs)
        scores = {
            "loss": float(loss.mean()) if len(loss) else float("nan"),
            "accuracy": compared[0].value(Accuracy()),
            "f1": compared[0].value(F1()),
        }
        samples = [Sample(texts[n], labels[n], outputs[n]) for n in samples_of(len(texts))]
        return Validation(scores, samples, compared, first(wrong))

    def _compared(
        self, decided: Sequence[LabelDecision | None], outputs: Sequence[str]
    ) -> list[ComparedOutputs]:
        """Labels, or sets of them where a text may have several; and the probabilities of classes."""
        reader, ours, theirs = self._reader, list[Any](outputs), list[Any](self._valid.labels)
        if reader.separator is not None:
            ours, theirs = (
                [frozenset(names_of(line, reader.separator)) for line in lines] for lines in (ours, theirs)
            )
        probs = (None if one is None else one.probs for one in decided)
        labels = ComparedOutputs(ours, theirs, reads="labels")
        return [labels, probabilities_of(reader.classes, probs, theirs, None)]

    def _losses(self, decided: Sequence[LabelDecision | None]) -> np.ndarray:
        """The nats of each text that was read."""
        labels, reader = self._valid.labels, self._reader
        read = [(one.probs, label) for one, label in zip(decided, labels, strict=True) if one is not None]
        targets = reader.targets([label for _, label in read]).numpy()
        if reader.separator is not None:
            return nats(np.array([probs for probs, _ in read]), targets) if read else np.zeros(0)
        # a class that training never saw has no probability and no part in the loss
        probs = [float(probs[n]) for (probs, _), n in zip(read, targets, strict=True) if n >= 0]
        return -np.log(np.maximum(probs, 1e-30))  # type: ignore[no-any-return]


class ClassifyPipeline(TextLabelPipeline[LabelledExample]):
    """The vocabulary and the classes of a run.

    Attributes:
        threshold: from which the rarer of two classes has the highest F1, if it was fitted.
    """

    task: "ClassifyTask"
    training: ClassifyTraining | None
    threshold: ClassThreshold | None = None

    def __init__(
        self, task: "ClassifyTask", reader: LabelReader, context: PretrainedContext | None = None
    ) -> None:
        self.task = task
        self.reader = reader
        self._context = context
        if context is not None:
            reader.context = context.read

    def model(self) -> Labeller:
        """A new model; where training begins, with the given vectors or as naive Bayes."""
        training = self.training
        if training is None:
            return self._built("none")
        if training.class_weights != "best":
            model = self._built(training.class_weights)
            return training.solve(model) if training.solved else model
        plain, balanced = self._built("none"), self._built("balanced")
        best = training.solve(plain, balanced)
        training.class_weights = "none" if best is plain else "balanced"
        training.progress(f"class_weights: {training.class_weights}, the better one", 0, 0)
        return best

    def _built(self, class_weights: ClassWeights) -> Labeller:
        context = self._context.model() if self._context else None
        classes, weights = self.reader.classes, list[float]()
        if self.training is not None:
            weights = weights_of(class_weights, classes, self.training.train.labels)
        model = self.task.model_config.build(
            self.reader.num_items,
            len(classes),
            context,
            weights=weights,
            several=self.reader.separator is not None,
            inside=self.reader.inside,
        )
        if self.training is not None:
            with torch.no_grad():
                self._begin(model, self.training)
        return model

    def _begin(self, model: Labeller, training: ClassifyTraining) -> None:
        """Fill a new model, in place and without gradients."""
        table = model.embed.words if isinstance(model.embed, InContext) else model.embed
        bag = self.task.model_config.bag
        reader, train = self.reader, training.train
        if isinstance(table, GramTable):
            if bag is None or not bag.naive_bayes:
                return
            bags = [reader.counted(row, text) for row, text in zip(training.rows, train.texts, strict=True)]
            bayes = NaiveBayes(bags, train.labels, alpha=bag.alpha)
            logp = np.zeros((reader.num_items, len(bayes.classes)))
            logp[[int(str(number)) for number in bayes.items]] = bayes.logp
            table.begin(torch.from_numpy(logp).float())
            assert isinstance(model.head, Categorical)
            model.head.bias.copy_(torch.from_numpy(bayes.prior))
        elif isinstance(table, Tokens):
            for number, word in enumerate(reader.words):
                if word in training.vectors:
                    table.table.weight[number] = torch.from_numpy(training.vectors[word]) / table.size**0.5

    def widen(self, run: Path) -> None:
        """A solved model reads the items of the validation texts too."""
        training = self.training
        assert training is not None
        if training.solved:
            folder = run / WHOLE
            folder.mkdir(exist_ok=True)
            self.task.learn_vocabulary(training.joined(), folder)
            self.task.learn_items(training.joined(), folder)
            self.reader = self.task.reader(folder)
        self.training = training.whole(self.reader)

    def belong_to_refit(self, run: Path) -> None:
        super().belong_to_refit(run)
        if self.task.saved(run / WHOLE).exists():
            self.reader = self.task.reader(run / WHOLE)
            self.use(LabelCalibration.load(run))

    def rows(self) -> Mapping[str, Sequence[str]]:
        """See Pipeline.rows; the classes are the rows of the head."""
        subclasses = [" ".join(pair) for pair in self.reader.finer]
        of_head = dict.fromkeys(("head.weight", "head.bias"), subclasses or self.reader.classes)
        if self.reader.items is not None:
            return of_head
        found = named_rows(self.reader.vocabulary)
        if self._context is not None:
            found["embed.words.table.weight"] = found.pop("embed.table.weight")
        return {**found, **of_head}

    def predictor(self, model: Labeller, settings: PredictionSettings | None = None) -> TextClassifier:
        """The trained model: `predict(text)` answers with a class."""
        asked = ClassifierSettings.of(settings)
        others = [self._joined(member) for member in asked.ensemble]
        return TextClassifier(model, self.reader, self.task.data, others=others, scores=asked.scores)

    def _joined(self, member: OtherRun) -> TextClassifier:
        if not isinstance(member.pipeline, ClassifyPipeline):
            raise ConfigError(f"--ensemble {member.path}: expected a run of the task classify; leave it out")
        other = member.pipeline.predictor(member.model)
        with within(f"--ensemble {member.path}"):
            order(other.reader.classes, self.reader.classes)
        return other

    def examples(self, split: Split, file: Path | None = None) -> list[LabelledExample]:
        source = self.task.data
        found = list(source.texts(split) if file is None else source.at(file))
        if not found:
            raise DataError(f"{file}: expected at least one text, got none")
        return found

    def valid_texts(self) -> Iterable[str]:
        return (one.text for one in self.task.data.texts("valid"))

    def title(self, asked: Scoring) -> str:
        named, members = asked.title(self.task.data), asked.settings.ensemble
        return f"{named}, {1 + len(members)} runs together" if members else named

    def score(self, model: Labeller, asked: Scoring) -> Evaluation:
        for member in asked.settings.ensemble if asked.data is None else ():
            if isinstance(member.pipeline, ClassifyPipeline):
                self._check_unseen(member.path, member.pipeline.task.data, asked.split)
        return super().score(model, asked)

    def scores(
        self,
        model: Labeller,
        found: list[LabelledExample],
        train: list[LabelledExample] | None,
        title: str,
        settings: ClassifierEvaluationSettings,
    ) -> LabelEvaluation | SeveralEvaluation:
        members = settings.ensemble
        classifier = self.predictor(model, ClassifierSettings(ensemble=members))
        texts, known = LabelledTexts.of(found), None if train is None else LabelledTexts.of(train)
        if self.reader.separator is not None:
            return evaluate_several(classifier, texts, title=title, train=known)
        threshold, own = None if members else self.threshold, False
        with suppress(ConfigError, DataError):  # without validation texts only a threshold that was kept
            valid = LabelledTexts.of(self.examples("valid"))
            own = texts[:2] == valid[:2]
            if threshold is None and len(self.reader.classes) == 2 and not self.refit:
                threshold = threshold_of(self.reader.classes, *self._judged(classifier, valid))
        return evaluate(classifier, texts, title=title, train=known, threshold=threshold, own=own)

    def text_of(self, example: LabelledExample) -> str:
        return example.text

    def use(self, calibration: LabelCalibration) -> None:
        self.reader.temperature = calibration.temperature
        self.threshold = calibration.threshold
        if len(calibration.thresholds) == len(self.reader.classes):
            self.reader.thresholds = list(calibration.thresholds)

    def calibrate(self, model: Labeller) -> None:
        assert self.run is not None
        self.reader.temperature = 1.0
        valid, classes = LabelledTexts.of(self.examples("valid")), self.reader.classes
        probs, labels = self._judged(self.predictor(model), valid)
        targets = self.reader.targets(labels.tolist()).numpy()
        if self.reader.separator is not None:
            found = LabelCalibration(thresholds=thresholds(probs, targets))
        else:
            logp = np.log(np.maximum(probs, 1e-30))
            temperature = fitted(logp, targets)
            found = LabelCalibration(
                temperature, threshold=threshold_of(classes, heated(logp, temperature), labels)
            )
        self.use(found)
        found.save(self.run)

    def _judged(self, classifier: TextClassifier, valid: LabelledTexts) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities [N, C] of texts that can be read and have a known class, and their labels [N]."""
        several = self.reader.separator is not None
        found = classified(classifier, valid, "validation")
        read = [
            (one.decided.probs, label)
            for one, label in zip(found.answers, valid.labels, strict=True)
            if one is not None and (several or self.reader.number(label) >= 0)
        ]
        if not read:
            raise DataError("expected a validation text that the model can read, got none")
        return np.stack([probs for probs, _ in read]), np.array([label for _, label in read])

    def _check_unseen(self, run: Path, data: LabelData, split: Split) -> None:
        """Refuse a member of an ensemble whose training texts may hold those of the split."""
        if data.parts(split) != self.task.data.parts(split):
            raise ConfigError(
                f"--ensemble {run}: has a different split, so it may have been "
                "trained on texts tested here; name a run with the same section data"
            )

    def inspection(self, model: Labeller, settings: InspectionSettings) -> Inspection:
        return inspect_text(self.predictor(model), settings.input(), self.valid_texts)

    def model_export(self, model: Labeller) -> ModelExport:
        return export_classifier(self.predictor(model), self.valid_texts)


class ClassifyTask(TextLabelTask[LabelData, LabelModel]):
    """A classifier, from labelled texts."""

    sections: ClassVar = {"data": LabelData, "model": LabelModel}
    prediction_settings: ClassVar = ClassifierSettings
    evaluation_settings: ClassVar = ClassifierEvaluationSettings
    check_options: ClassVar[Sequence[str]] = ("text", "label", "labels", "separator", "encoding")
    note: ClassVar[str] = "Accuracy: share of right classes; f1: mean F1 of the classes; loss: nats per text."
    columns: ClassVar[Sequence[str]] = ("text", "label")
    evaluation: ClassVar = LabelEvaluation
    target_unit: ClassVar[str] = "text"

    @classmethod
    def encoder_of(cls, recipe: Recipe) -> ReusedEncoder | None:
        model = recipe["model"]
        embedding = model["embedding"]
        if model["bag"] is not None or embedding["contextual"] is not None:
            return None
        return ReusedEncoder(model["encoder"], embedding["size"], embedding.get("frame", "none"))

    @classmethod
    def started(cls, found: ReusedEncoder) -> Mapping[str, object]:
        return {
            "data.vocabulary": None,
            "model.bag": None,
            "model.embedding.contextual": None,
            "model.embedding.vectors": None,
            "model.embedding.size": found.size,
            "model.embedding.frame": found.frame,
            "model.encoder": found.encoder,
            "training.start_parts": found.parts(),
        }

    def about(self) -> str:
        """The corpus or file, and given vectors of words."""
        read = self.embedding.vectors if "model.embedding" not in self.unused() else None
        vectors = f", with the word vectors of {read}" if read else ""
        return f"texts of {self.data.corpus or called(self.data.train or '')}{vectors}"

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        """Pool and network, or the items of a linear model; not what several labels or subclasses refuse."""
        found = usual(recipe)
        several, finer = (recipe["data"][name] is not None for name in ("separator", "finer"))
        if several:
            del found["model.smoothing"]
        if recipe["model"]["bag"] is None:
            pools = Range(
                values=("mean", "max", "last", {"use": "queries", "num_queries": 4, "score": "additive"})
            )
            if recipe["model"]["encoder"]["use"] == "filters":
                found["model.encoder.widths"] = Range(values=([2, 3], [2, 3, 4], [3, 4, 5], [1, 2, 3, 4, 5]))
            return {**found, "model.pool": pools}
        rate = recipe["training"]["optimiser"]["lr"]  # far from it, a linear model diverges or stays at zero
        rates = {"training.optimiser.lr": Range(low=rate / 2, high=rate * 2, log=True)}
        initial = {} if several or finer else {"model.bag.naive_bayes": Range(values=(False, True))}
        return {
            **({} if recipe["model"]["bag"]["solve"] else rates),
            "model.bag.ngrams": Range(low=1, high=3, step=1),
            "model.bag.min_count": Range(low=1, high=5, step=1),
            "model.bag.weight": Range(values=("presence", "frequency", "tfidf")),
            **initial,
            **{name: one for name, one in found.items() if name == "model.smoothing"},
        }

    @cached_property
    def max_length(self) -> int:
        """Number of tokens that are read of a text, beside the symbols around it."""
        asked = self.data.max_length or (LONGEST if self.model_config.bag is None else UNLIMITED)
        if self.embedding.frame == "none":
            return asked
        return min(asked, (most_positions(self.small_model()) or UNLIMITED) - 2)

    def implied(self) -> Sequence[Implied]:
        """What a solved model needs, and the length that is recorded of a model with an encoder."""
        bag = self.model_config.bag
        if bag is None:
            return () if self.data.max_length else [Implied("data", "max_length", LONGEST)]
        if not bag.solve:
            return ()
        why = "model.bag.solve finds the best weights in float32, from whatever beginning"
        return [
            *super().implied(),
            Implied("training", "precision", "float32", why),
            Implied("training", "start", "null", why),
        ]

    def unused(self) -> Sequence[str]:
        """What a bag replaces."""
        bag = self.model_config.bag
        if bag is None:
            return ()
        replaced = [f"model.{name}" for name in ("encoder", "pool", "dropout")]
        if bag.solve and self.embedding.vectors is not None:
            others = (one.name for one in fields(self.embedding) if one.name != "vectors")
            replaced += [f"model.embedding.{name}" for name in others]
        else:
            replaced.append("model.embedding")
        return [*replaced, "training"] if bag.solve else replaced

    @property
    def embedding(self) -> TextEmbedding:
        return self.model_config.embedding

    def check_ready(self) -> None:
        several, finer = self.data.separator is not None, self.data.finer is not None
        self.model_config.check_labels(several=several, finer=finer)
        if self.embedding.contextual is not None:
            whole_words(self.data.vocabulary.kind)
        super().check_ready()

    def check_vectors(self) -> None:
        bag = self.model_config.bag
        if bag is None:
            super().check_vectors()
        elif self.vectors and not bag.solve:
            raise ConfigError(
                "model: embedding.vectors: requires bag.solve: true, or no bag; add it, or leave vectors out"
            )

    def small_model(self) -> Labeller:
        return self.model_config.build(5, 3)

    def rehearse(self) -> Loss:
        """Two texts of three tokens and one."""
        several = self.data.separator is not None
        inside = (0, 1, 1, 2) if self.data.finer is not None else ()
        model = self.model_config.build(11, 3, several=several, inside=inside)
        target = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]) if several else torch.tensor([2, 0])
        numbers, mask = pad([[5, 6, 7], [8]])
        source = Grams(numbers, torch.ones(2, 3)) if self.model_config.bag is not None else numbers
        return model.loss(LabelBatch(source, mask, target, 2))

    def read(self, progress: Progress) -> tuple[LabelledTexts, LabelledTexts]:
        train = LabelledTexts.of(list(self.data.texts("train")), self.data.finer)
        valid = LabelledTexts.of(list(self.data.texts("valid")))
        if few := small_validation(len(valid.texts), len(train.texts), cut=self.data.hold_out > 0):
            progress(few, 0, 0)
        for note in self.data.notes():
            progress(note, 0, 0)
        self.data.check_classes("train", train.labels)
        if self.data.finer is not None:
            check_subclasses(train.labels, train.finer, self.data.finer, self.data.describe("train"))
        self.data.check_classes("valid", valid.labels)
        return train, valid

    def saved(self, run: Path) -> Path:
        return run / "tokenizer.classes.json"

    def training(
        self,
        corpus: tuple[LabelledTexts, LabelledTexts],
        pipeline: ClassifyPipeline,
        run: Path,
        progress: Progress,
    ) -> ClassifyTraining:
        (train, valid), reader = corpus, pipeline.reader
        if unknown := reader.unknown(train.labels):
            raise DataError(
                f"{self.data.describe('train')}: expected the classes that the model has "
                f"({', '.join(reader.classes)[:200]}), got {unknown[0]!r}; rename it, or train from "
                "the beginning"
            )
        limit = most_positions(self.small_model())
        training = ClassifyTraining(self.data, reader, train, valid, limit, progress)
        training.class_weights, training.vectors = self.model_config.class_weights, self.vectors
        if not training.rows:
            raise DataError(
                f"every training text needs more than {limit} positions; raise the max_length of the model"
            )
        most, items = self.max_length, f"{reader.num_items:,} tokens"
        if reader.items is not None:
            items = reader.items.counts()
        rows = reader.vocabulary.encode_batch(train.texts)
        cut = sum(len(row) > most for row in rows)
        cuts = f"{cut:,} cut at {plural(most, 'token')}" if most < UNLIMITED else "read whole"
        long = f", {training.left_out:,} left out, longer than the model's {limit} positions"
        progress(
            f"training texts: {len(train.texts):,} ({cuts}"
            f"{long if training.left_out else ''}), "
            f"{len(reader.classes)} classes, {items}",
            0,
            0,
        )
        if self.embedding.vectors is not None:
            words, kind = reader.words, self.data.vocabulary.kind
            counts = Counter(words[number] for row in rows for number in row)
            given, lowercase = self.embedding.vectors, "data.vocabulary.lowercase"
            progress(coverage(given, self.vectors, counts, lowercase=lowercase, kind=kind), 0, 0)
        return training

    def learn(self, corpus: tuple[LabelledTexts, LabelledTexts], run: Path, progress: Progress) -> None:
        progress("learning the vocabulary", 0, None)
        train, _ = corpus
        if not (run / "tokenizer.json").exists():  # or another run's, by training.start_parts
            self.learn_vocabulary(train, run)
        self.learn_items(train, run)

    def learn_vocabulary(self, train: LabelledTexts, folder: Path) -> None:
        """Learn the vocabulary, which words that have given vectors join, and save it in a folder."""
        self.data.vocabulary.learn([*train.texts, *self.vectors]).save(folder / "tokenizer.json")

    def learn_items(self, train: LabelledTexts, folder: Path) -> None:
        """Learn the classes and the items, with the vocabulary of a folder, and save them there."""
        LabelReader.learn(
            load_vocabulary(folder / "tokenizer.json"),
            train.texts,
            train.labels,
            bag=self.model_config.bag,
            max_length=self.max_length,
            separator=self.data.separator,
            finer=train.finer,
            vectors=self.vectors,
        ).save(folder)

    def reader(self, folder: Path) -> LabelReader:
        """What `learn` saved in a folder."""
        bag, separator = self.model_config.bag, self.data.separator
        found = LabelReader.load(folder, bag=bag, max_length=self.max_length, separator=separator)
        found.frame = self.embedding.frame
        return found

    def prepare(self, run: Path, progress: Progress) -> "Pipeline":
        """Read the texts with the border between columns that the run has, if it was begun before."""
        if self.saved(run).exists():
            self.pipeline(run, None)
        return super().prepare(run, progress)

    def pipeline(self, run: Path, context: PretrainedContext | None) -> ClassifyPipeline:
        reader = self.reader(run)
        self.data = self.data.bordered(reader.border)
        return ClassifyPipeline(self, reader, context)

    @classmethod
    def knows(cls, file: Path) -> bool:
        """A column of texts with one of few classes, and no recordings; or lines with `__label__`."""
        from weft.data.audio import SPOKEN
        from weft.data.listed import first_texts

        with suppress(DataError, ConfigError):
            if first_texts(file, SPOKEN):  # with the class of each speaker
                return False
        return holds_texts(file)

    @classmethod
    def check(cls, files: Sequence[Path], **form: Any) -> Report:
        """Check labelled texts; their form is guessed where it is not given. See data.py."""
        text, label = form.pop("text", None), form.pop("label", None)
        notes: list[str] = []
        with suppress(DataError, ConfigError):  # the check names it
            text, label, *notes = columns(files[0], text, label, form.get("encoding", "utf-8"))
            if is_table(files[0]) and not any(notes):
                notes = [f"{files[0]}: {read_as(text_columns(text), label)}"]
        report = check_labels(files, text=text or "text", label=label or "label", **form)
        return report._replace(notes=(*filter(None, notes), *report.notes))
