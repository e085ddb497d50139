"""M8, classification: a text has one of several classes.

Read next: ../shared/labels/data.py, reader.py, model.py, start.py, predictor.py, evaluation.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.batching import Batches
from weft.data.guess import holds_texts
from weft.data.labelled import MARK, kind_of
from weft.data.lines import read_lines
from weft.data.report import Report
from weft.data.vectors import read_vectors
from weft.errors import ConfigError, DataError, WeftError, within
from weft.metrics.f1 import by_class
from weft.models import Predictor
from weft.nn.embed.grams import Grams
from weft.nn.heads.head import Loss
from weft.tasks.classify.check import check_labels
from weft.tasks.classify.columns import columns
from weft.tasks.classify.evaluation import LabelEvaluation, evaluate
from weft.tasks.classify.model import LabelModel
from weft.tasks.classify.predictor import WINDOW, Classifier, Decided, order
from weft.tasks.classify.reader import Reader
from weft.tasks.classify.start import begin
from weft.tasks.classify.table import answered, headed
from weft.tasks.each import each, place
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.context import standing
from weft.tasks.shared.context.standing import Standing, whole_words
from weft.tasks.shared.labels.batch import LabelBatch
from weft.tasks.shared.labels.data import LabelData
from weft.tasks.shared.labels.splits import small_validation
from weft.tasks.shared.writing.batch import pad
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered


class Classify(Whole):
    """Labelled texts to a classifier.

    Args:
        data: where texts come from.
        model: what reads them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": LabelData, "model": LabelModel}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": ("scores", "plot", "ensemble"),
        "evaluate": ("ensemble",),
        "check": ("text", "label", "labels", "encoding"),
    }
    note: ClassVar[str] = "Accuracy: share of right classes; f1: mean F1 of the classes; loss: nats a text."
    columns: ClassVar[Sequence[str]] = ("text", "label")
    linewise: ClassVar[bool] = True
    evaluation: ClassVar = LabelEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "f1": "higher",
    }

    def __init__(self, *, data: LabelData, model: LabelModel) -> None:
        self.data = data
        self.parts = model
        self.reader: Reader
        self._rows: list[list[int]]
        self._train: tuple[list[str], list[str]] = ([], [])
        self._valid: tuple[list[str], list[str]]
        self._begins = False
        self._standing: Standing | None = None

    def about(self) -> str:
        """The corpus or file."""
        return f"texts of {self.data.corpus or Path(str(self.data.train)).name}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the parts fit together and the files are there."""
        with within("model"):
            self.parts.build(5, 3)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)
        if (contextual := self.parts.embedding.contextual) is not None:
            whole_words(self.data.vocabulary.kind)
            standing.check_ready(contextual, self)
        vectors, size = self.parts.embedding.vectors, self.parts.embedding.size
        if vectors is not None and (there := read_vectors(vectors, ())[1]) != size:
            raise ConfigError(
                f"model: embedding.size is {size}, and the vectors of {vectors} have {there} numbers; "
                f"set embedding.size: {there}"
            )

    def rehearse(self) -> Loss:
        """Two texts of three tokens and one."""
        model = self.parts.build(11, 3)
        numbers, mask = pad([[5, 6, 7], [8]])
        source = Grams(numbers, torch.ones(2, 3)) if self.parts.bag is not None else numbers
        return model.loss(LabelBatch(source, mask, torch.tensor([2, 0]), 2))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Learn vocabulary and classes unless the run has them; read the texts."""
        if self.parts.embedding.contextual is not None:
            self._standing = standing.begin(self.parts.embedding.contextual, self, run)
        train = list(self.data.texts("train"))
        self._train = [one.text for one in train], [one.label for one in train]
        valid = list(self.data.texts("valid"))
        if few := small_validation(len(valid), len(train), cut=self.data.hold_out > 0):
            progress(few, 0, 0)
        self._valid = [one.text for one in valid], [one.label for one in valid]
        self.data.check_classes("train", self._train[1])
        self.data.check_classes("valid", self._valid[1])
        if not (run / "tokenizer.classes.json").exists():
            progress("learning the vocabulary", 0, None)
            given = self.parts.embedding.vectors if self.parts.bag is None else None
            more = list(read_vectors(given)[0]) if given is not None else []
            vocabulary = self.data.vocabulary.learn([*self._train[0], *more])
            vocabulary.save(run / "tokenizer.json")
            reader = Reader.learn(
                vocabulary, *self._train, bag=self.parts.bag, max_length=self.data.max_length
            )
            reader.save(run)
        self.open(run)
        self._rows = self.reader.encode(self._train[0])
        cut = sum(
            len(row) > self.data.max_length for row in self.reader.vocabulary.encode_batch(self._train[0])
        )
        progress(
            f"training texts: {len(self._rows):,} ({cut:,} cut at {self.data.max_length} tokens), "
            f"{len(self.reader.classes)} classes, {self.reader.num_items:,} "
            f"{'items' if self.parts.bag else 'tokens'}",
            0,
            0,
        )
        self._begins = True
        return self

    def open(self, run: Path) -> Ready:
        """Read vocabulary and classes of the run."""
        self.reader = Reader.load(run, bag=self.parts.bag, max_length=self.data.max_length)
        if self.parts.embedding.contextual is not None:
            self._standing = self._standing or standing.reopen(self, run)
            self.reader.context = self._standing.read
        return self

    def model(self) -> Predictor:
        """A new model; where training begins, with the given vectors or as naive Bayes."""
        context = self._standing.model() if self._standing else None
        model = self.parts.build(self.reader.num_items, len(self.reader.classes), context)
        if self._begins:
            with torch.no_grad():
                begin(model, self.parts, self.reader, self._rows, *self._train)
        return model

    def plan(self, seed: int) -> Batches:
        """Batches of the training texts."""
        lengths = np.array([[max(1, len(row))] * 2 for row in self._rows])
        rows = self.data.batch_rows or None
        return Batches(lengths, max_tokens=self.data.batch_tokens, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        """Training texts by number."""
        chosen = [int(number) for number in numbers]
        classes = [self.reader.number(self._train[1][n]) for n in chosen]
        texts = [self._train[0][n] for n in chosen]
        return self.reader.batch([self._rows[n] for n in chosen], classes, texts)

    def validate(self, model: nn.Module) -> Validation:
        """Loss, accuracy and mean F1."""
        assert isinstance(model, Predictor)
        texts, labels = self._valid
        decided = list(Classifier(model, self.reader).classify(texts))
        outputs = [one.label for one in decided]
        numbers = [self.reader.number(label) for label in labels]
        # a class that training never saw has no probability and no part in the loss
        said = [float(one.probs[n]) for one, n in zip(decided, numbers, strict=True) if n >= 0]
        rows = by_class(outputs, labels)
        scores = {
            "loss": float(-np.log(np.maximum(said, 1e-30)).mean()) if said else float("nan"),
            "accuracy": sum(a == b for a, b in zip(outputs, labels, strict=True)) / len(labels),
            "f1": sum(row.f1 for row in rows) / len(rows),
        }
        return Validation(scores, [Sample(texts[n], labels[n], outputs[n]) for n in samples_of(len(texts))])

    def predictor(self, model: nn.Module, members: Sequence[Any] = ()) -> Classifier:
        """The trained model at work: `predict(text)` answers with a class.

        Args:
            model: in evaluation mode.
            members: opened runs that decide along, as an ensemble; each reads texts its own way.

        Raises:
            ConfigError: a member is another kind of run, or has other classes.
        """
        assert isinstance(model, Predictor)
        return Classifier(model, self.reader, others=[self._joined(member) for member in members])

    def _joined(self, member: Any) -> Classifier:
        other = member.task
        if not isinstance(other, Classify):
            raise ConfigError(f"--ensemble {member.path}: is no run of the task classify; leave it out")
        with within(f"--ensemble {member.path}"):
            order(other.reader.classes, self.reader.classes)
        return Classifier(member.model, other.reader)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A class a text: lines, with or without `__label__x` before them, or the text column of a table.

        A table with a header is written again, with the classes in a new last column. With scores: label TAB
        class=probability, the likeliest first; of a table a column for each class.
        """
        if options.get("plot") and options.get("ensemble"):
            raise ConfigError("--plot: draws where one model looked; leave out --plot or --ensemble")
        classifier = self.predictor(model, options.get("ensemble", ()))
        if isinstance(source, Path) and (table := headed(self.data, source)) is not None:
            yield from answered(classifier, table, self.reader.classes if options.get("scores") else ())
            return
        asked = self._asked(source)
        while window := list(islice(asked, WINDOW if isinstance(source, Path) else 1)):
            decided = each([text for _, text in window], classifier.classify)
            for (number, text), one in zip(window, decided, strict=True):
                if isinstance(one, WeftError):
                    yield unanswered(place(source, number), one)
                else:
                    yield Answer(self._written(one, bool(options.get("scores"))), text)

    def _asked(self, source: Path | BinaryIO) -> Iterator[tuple[int, str]]:
        """Each text, and its line."""
        if isinstance(source, Path) and kind_of(source) != "lines":
            table = self.data.read(source, label=self.data.text)
            yield from ((one.number, one.text) for one in table)
            return
        for number, line in enumerate(read_lines(source), 1):
            yield number, line.partition(" ")[2] if line.startswith(MARK) else line

    def _written(self, decided: Decided, scores: bool) -> str:
        if not scores:
            return decided.label
        best = np.argsort(-decided.probs, kind="stable").tolist()
        return "\t".join([decided.label, *(f"{self.reader.classes[n]}={decided.probs[n]:.4f}" for n in best)])

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> LabelEvaluation:
        """Scores on a split or another file, with the baselines where the training texts are still there.

        Raises:
            ConfigError: a member of an ensemble learnt from texts of the split.
        """
        found = list(self.data.texts(split) if data is None else self.data.at(data))
        if not found:
            raise DataError(f"{data}: expected at least one text, got none")
        train = None
        with suppress(DataError):
            texts = list(self.data.texts("train"))
            train = [one.text for one in texts], [one.label for one in texts]
        title = self.data.describe(split) if data is None else data.name
        texts_, labels = [one.text for one in found], [one.label for one in found]
        members = options.get("ensemble", ())
        for member in members if data is None else ():
            if isinstance(member.task, Classify) and member.task.data.parts(split) != self.data.parts(split):
                raise ConfigError(
                    f"--ensemble {member.path}: was trained on other folds, or holds other texts out, so it "
                    "may have learnt from those tested here; name a run with the same section data"
                )
        title += f", {1 + len(members)} runs together" if members else ""
        return evaluate(self.predictor(model, members), texts_, labels, title=title, train=train)

    @classmethod
    def knows(cls, table: Path) -> bool:
        """A column of texts, and one of few classes beside it."""
        return holds_texts(table)

    @classmethod
    def check(cls, files: Sequence[Path], **form: Any) -> Report:
        """Labelled texts, in the form that check_labels is told, else guessed: see labels/check.py."""
        text, label, note = form.pop("text", None), form.pop("label", None), ""
        with suppress(DataError, ConfigError):  # the check names it
            text, label, note = columns(files[0], text, label, form.get("encoding", "utf-8"))
        report = check_labels(files, text=text or "text", label=label or "label", **form)
        return report._replace(notes=(note,) if note else ())
