"""Classification: a text has one of several classes.

Read next: data.py, reader.py, model.py, ready.py, start.py, predictor.py, evaluation.py.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from weft.data.guess import holds_texts
from weft.data.report import Report
from weft.data.vectors import read_vectors
from weft.errors import ConfigError, DataError, within
from weft.nn.embed.grams import Grams
from weft.nn.heads.head import Loss
from weft.nn.positions import most_positions
from weft.tasks import contextual as standing
from weft.tasks.classify.check import check_labels, columns
from weft.tasks.classify.data import LabelData
from weft.tasks.classify.evaluation import LabelEvaluation
from weft.tasks.classify.heads import check_subclasses
from weft.tasks.classify.model import LabelModel
from weft.tasks.classify.reader import Reader
from weft.tasks.classify.ready import ClassifyPipeline, ClassifyTraining, Texts
from weft.tasks.classify.space import space
from weft.tasks.contextual import Standing, whole_words
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.labels.calibration import LabelCalibration
from weft.tasks.labels.splits import small_validation
from weft.tasks.seq2seq.batch import pad
from weft.tasks.space import Recipe, Space
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary
from weft.wording import plural


class Classify(Task):
    """A classifier, from labelled texts.

    Args:
        data: where texts come from.
        model: what reads them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": LabelData, "model": LabelModel}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": ("scores", "plot", "ensemble"),
        "evaluate": ("ensemble", "calibrate"),
        "check": ("text", "label", "labels", "separator", "encoding"),
    }
    note: ClassVar[str] = "Accuracy: share of right classes; f1: mean F1 of the classes; loss: nats per text."
    columns: ClassVar[Sequence[str]] = ("text", "label")
    evaluation: ClassVar = LabelEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "f1": "higher",
    }

    def __init__(self, *, data: LabelData, model: LabelModel) -> None:
        self.data = data
        self.model_config = model

    def about(self) -> str:
        """The corpus or file."""
        return f"texts of {self.data.corpus or Path(str(self.data.train)).name}"

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        return space(recipe)

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the parts fit together and the files exist."""
        several, finer = self.data.separator is not None, self.data.finer is not None
        self.model_config.check_labels(several=several, finer=finer)
        with within("model"):
            self.model_config.build(5, 3)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)
        if (contextual := self.model_config.embedding.contextual) is not None:
            whole_words(self.data.vocabulary.kind)
            standing.check_ready(contextual, self)
        vectors, size = self.model_config.embedding.vectors, self.model_config.embedding.size
        if vectors is not None and (there := read_vectors(vectors, ())[1]) != size:
            raise ConfigError(
                f"model: embedding.size is {size}, but the vectors of {vectors} have {there} numbers; "
                f"set embedding.size: {there}"
            )

    def rehearse(self) -> Loss:
        """Two texts of three tokens and one."""
        several = self.data.separator is not None
        inside = (0, 1, 1, 2) if self.data.finer is not None else ()
        model = self.model_config.build(11, 3, several=several, inside=inside)
        target = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]) if several else torch.tensor([2, 0])
        numbers, mask = pad([[5, 6, 7], [8]])
        source = Grams(numbers, torch.ones(2, 3)) if self.model_config.bag is not None else numbers
        return model.loss(LabelBatch(source, mask, target, 2))

    def prepare(self, run: Path, progress: Progress) -> ClassifyPipeline:
        """Learn vocabulary and classes, unless the run has them, and read the texts."""
        contextual = self.model_config.embedding.contextual
        stood = None if contextual is None else standing.begin(contextual, self, run)
        train = Texts.of(list(self.data.texts("train")), self.data.finer)
        valid = Texts.of(list(self.data.texts("valid")))
        if few := small_validation(len(valid.texts), len(train.texts), cut=self.data.hold_out > 0):
            progress(few, 0, 0)
        self.data.check_classes("train", train.labels)
        if self.data.finer is not None:
            check_subclasses(train.labels, train.finer, self.data.finer, self.data.describe("train"))
        self.data.check_classes("valid", valid.labels)
        if not (run / "tokenizer.classes.json").exists():
            progress("learning the vocabulary", 0, None)
            self._learn(train, run)
        reader = self._reader(run, stood)
        if unknown := reader.unknown(train.labels):
            raise DataError(
                f"{self.data.describe('train')}: expected the classes that the model has "
                f"({', '.join(reader.classes)[:200]}), got {unknown[0]!r}; rename it, or train from "
                "the beginning"
            )
        limit = most_positions(self.model_config.build(5, 3))
        training = ClassifyTraining(self.data, reader, train, valid, limit)
        if not training.rows:
            raise DataError(
                f"every training text needs more than {limit} positions; raise the max_length of the model"
            )
        most, items = self.data.max_length, "items" if self.model_config.bag else "tokens"
        cut = sum(len(row) > most for row in reader.vocabulary.encode_batch(train.texts))
        long = f", {training.left_out:,} left out, longer than the model's {limit} positions"
        progress(
            f"training texts: {len(train.texts):,} ({cut:,} cut at {plural(most, 'token')}"
            f"{long if training.left_out else ''}), "
            f"{len(reader.classes)} classes, {reader.num_items:,} {items}",
            0,
            0,
        )
        return ClassifyPipeline(self, reader, standing=stood, training=training)

    def open(self, run: Path) -> ClassifyPipeline:
        """Read vocabulary and classes of the run."""
        stood = None if self.model_config.embedding.contextual is None else standing.reopen(self, run)
        reader = self._reader(run, stood)
        reader.temperature, thresholds = LabelCalibration.load(run)
        if len(thresholds) == len(reader.classes):
            reader.thresholds = list(thresholds)
        return ClassifyPipeline(self, reader, standing=stood, run=run)

    def _learn(self, train: Texts, run: Path) -> None:
        """Learn the vocabulary and the classes; words that have given vectors join the vocabulary."""
        given = self.model_config.embedding.vectors if self.model_config.bag is None else None
        more = list(read_vectors(given)[0]) if given is not None else []
        saved = run / "tokenizer.json"
        if not saved.exists():  # or another run's, by training.start_parts
            self.data.vocabulary.learn([*train.texts, *more]).save(saved)
        vocabulary = load_vocabulary(saved)
        Reader.learn(
            vocabulary,
            train.texts,
            train.labels,
            bag=self.model_config.bag,
            max_length=self.data.max_length,
            separator=self.data.separator,
            finer=train.finer,
        ).save(run)

    def _reader(self, run: Path, stood: Standing | None) -> Reader:
        reader = Reader.load(
            run, bag=self.model_config.bag, max_length=self.data.max_length, separator=self.data.separator
        )
        reader.context = None if stood is None else stood.read
        return reader

    @classmethod
    def knows(cls, table: Path) -> bool:
        """A column of texts, and one of few classes beside it."""
        return holds_texts(table)

    @classmethod
    def check(cls, files: Sequence[Path], **form: Any) -> Report:
        """Check labelled texts; their form is guessed where it is not given. See check.py."""
        text, label, note = form.pop("text", None), form.pop("label", None), ""
        with suppress(DataError, ConfigError):  # the check names it
            text, label, note = columns(files[0], text, label, form.get("encoding", "utf-8"))
        report = check_labels(files, text=text or "text", label=label or "label", **form)
        return report._replace(notes=(note,) if note else ())
