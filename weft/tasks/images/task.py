"""M12, images and video: a picture or a clip has one of several classes.

Read next: data.py, ../shared/pictures/model.py, predictor.py; ../nn/pictures/convolution.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.images import read_folders
from weft.data.lines import read_lines
from weft.data.report import Report
from weft.errors import DataError, ShapeError, within
from weft.metrics.f1 import by_class
from weft.models import Predictor
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.images.data import ClassData, Classed
from weft.tasks.images.evaluation import ImageEvaluation, evaluate
from weft.tasks.images.predictor import Seer
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.labels.batch import LabelBatch
from weft.tasks.shared.pictures.batch import Order, source
from weft.tasks.shared.pictures.check import check_classes
from weft.tasks.shared.pictures.data import asked
from weft.tasks.shared.pictures.model import ImageModel
from weft.tasks.shared.pictures.shape import read_shape, write_shape
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered


class Images(Whole):
    """Pictures or clips to a classifier.

    Args:
        data: where they come from.
        model: what looks at them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ClassData, "model": ImageModel}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("scores",)}
    keeps: ClassVar[Sequence[str]] = ("pictures.json",)
    note: ClassVar[str] = (
        "accuracy is the share of pictures with the right class, f1 the mean F1 of the classes, loss is nats "
        "a picture."
    )
    evaluation: ClassVar = ImageEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "f1": "higher",
    }

    def __init__(self, *, data: ClassData, model: ImageModel) -> None:
        self.data = data
        self.parts = model
        self.shape: tuple[int, ...]
        self.names: list[str]
        self._places: int
        self._train: Classed
        self._valid: Classed

    def about(self) -> str:
        """The pictures."""
        return f"classes of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the parts fit together and the folders are there."""
        with within("model"):
            self.parts.build(self.data.likely(), 3)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)

    def rehearse(self) -> Loss:
        """Two pictures or clips."""
        shape = self.data.likely()
        model = self.parts.build(shape, 3)
        x, mask = source(np.zeros((2, *shape), np.uint8), _places(self.parts, shape))
        return model.loss(LabelBatch(x, mask, torch.tensor([2, 0]), 2))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Read all pictures; learn which classes there are."""
        progress("reading pictures", 0, None)
        self._train, self._valid = self.data.load("train"), self.data.load("valid")
        shape, other = self._train.pixels.shape[1:], self._valid.pixels.shape[1:]
        if shape != other:
            raise DataError(
                f"{self.data.describe('valid')}: expected {shape}, as in training, got {other}; "
                "rescale them all, for example with data.size: 32"
            )
        names = sorted(set(self._train.labels))
        self.data.check_classes("train", self._train.labels)
        self.data.check_classes("valid", self._valid.labels)
        write_shape(run, shape, names)
        self.open(run)
        progress(f"training pictures: {len(self._train.labels):,}, {len(names)} classes", 0, 0)
        return self

    def open(self, run: Path) -> Ready:
        """Read shape and classes of the run."""
        self.shape, self.names = read_shape(run)
        self._places = _places(self.parts, self.shape)
        return self

    def model(self) -> Predictor:
        """A new model."""
        return self.parts.build(self.shape, len(self.names))

    def plan(self, seed: int) -> Order:
        """Batches of the training pictures."""
        return Order(len(self._train.labels), self.data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        """Training pictures by number."""
        labels = [self.names.index(self._train.labels[int(number)]) for number in numbers]
        x, mask = source(self._train.pixels[numbers], self._places)
        return LabelBatch(x, mask, torch.tensor(labels), len(labels))

    def validate(self, model: nn.Module) -> Validation:
        """Loss, accuracy and mean F1."""
        found = self._valid
        probs = self.predictor(model).probs(found.pixels)
        outputs = [self.names[n] for n in probs.argmax(1)]
        known = {name: n for n, name in enumerate(self.names)}
        # a class that training never saw has no probability and no part in the loss
        said = [row[known[label]] for row, label in zip(probs, found.labels, strict=True) if label in known]
        rows = by_class(outputs, found.labels)
        scores = {
            "loss": float(-np.log(np.maximum(said, 1e-30)).mean()) if said else float("nan"),
            "accuracy": sum(a == b for a, b in zip(outputs, found.labels, strict=True)) / len(outputs),
            "f1": sum(row.f1 for row in rows) / len(rows),
        }
        shown = samples_of(len(outputs))
        return Validation(scores, [Sample(found.names[n], found.labels[n], outputs[n]) for n in shown])

    def predictor(self, model: nn.Module) -> Seer:
        """The trained model at work: `predict(file or array)` answers with a class."""
        assert isinstance(model, Predictor)
        return Seer(model, self.names, self.shape, self.data.one)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A class for each picture: of a folder, of one file, or of files named a line each.

        With scores: class TAB class=probability, the likeliest first.
        """
        seer = self.predictor(model)
        files = asked(source) if isinstance(source, Path) else None
        for number, path in enumerate(files or (Path(line.strip()) for line in read_lines(source)), 1):
            try:
                probs = seer.probs(seer.read(path)[None])[0]
            except (DataError, ShapeError) as error:
                if path == source:
                    raise
                yield unanswered("" if files else place(source, number), error)
                continue
            order = np.argsort(-probs, kind="stable").tolist()
            told = [f"{self.names[n]}={probs[n]:.4f}" for n in order] if options.get("scores") else []
            yield Answer("\t".join([self.names[order[0]], *told]))

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ImageEvaluation:
        """Accuracy, F1 of each class and confusion; `data` is a folder with a folder for each class."""
        found = self.data.load(split) if data is None else self.data.read(read_folders(data))
        if found.pixels.shape[1:] != self.shape:
            raise DataError(
                f"{data or split}: expected {self.shape}, as the model was trained on, "
                f"got {found.pixels.shape[1:]}; rescale them"
            )
        usual = None
        with suppress(DataError):
            train = (
                self.data.load("train").labels
                if self.data.generated
                else [one.label for one in self.data.find("train")]
            )
            usual = Counter(train).most_common(1)[0][0]
        title = self.data.describe(split) if data is None else data.name
        return evaluate(self.predictor(model), found, title=title, usual=usual)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Folders of pictures or clips: see pictures/check.py."""
        return check_classes(files)


def _places(model: ImageModel, shape: tuple[int, ...]) -> int:
    with torch.device("meta"):  # its weights are not looked at, and no random number is drawn
        return model.front(shape).places
