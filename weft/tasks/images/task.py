"""Images and video: predicts the class of a picture or a clip.

Read next: data.py, ../pictures/data.py, predictor.py; ../../nn/pictures/convolution.py.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from weft.data.batching import ShuffledBatches
from weft.data.images import holds_classes, read_folders
from weft.errors import DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.f1 import F1
from weft.metrics.scored import ComparedOutputs
from weft.models import Labeller
from weft.nn.heads.head import Loss
from weft.tasks.evaluation import Sample, Validation, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.images.data import ClassData, LabelledPictures
from weft.tasks.images.predictor import (
    ImageClassifier,
    ImageEvaluation,
    evaluate,
    export_pictures,
    inspect_picture,
)
from weft.tasks.inspection import Inspection
from weft.tasks.labels.base import LabelBatch, LabelTask, probabilities_of
from weft.tasks.pictures.data import ImageModel, check_classes, places_of
from weft.tasks.pictures.pictures import check_shape, read_shape, source, write_shape
from weft.tasks.task import (
    InspectionSettings,
    Pipeline,
    PredictExample,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Training,
)
from weft.wording import plural


@dataclass(eq=False)
class ImagesTraining(Training):
    """The training pictures."""

    pipeline: "ImagesPipeline"
    train: LabelledPictures
    valid: LabelledPictures
    places: int

    def plan(self, seed: int) -> ShuffledBatches:
        return ShuffledBatches(len(self.train.labels), self.pipeline.task.data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        labels = [self.pipeline.names.index(self.train.labels[int(number)]) for number in numbers]
        x, mask = source(self.train.pixels[numbers], self.places)
        return LabelBatch(x, mask, torch.tensor(labels), len(labels))

    def validate(self, model: Labeller) -> Validation:
        found, names = self.valid, self.pipeline.names
        probs = self.pipeline.predictor(model).probs(found.pixels)
        outputs = [names[n] for n in probs.argmax(1)]
        labels = ComparedOutputs(outputs, found.labels, reads="labels")
        known = {name: n for n, name in enumerate(names)}
        # The loss leaves out classes that training has not seen: the model gives them no probability.
        said = [row[known[label]] for row, label in zip(probs, found.labels, strict=True) if label in known]
        scores = {
            "loss": float(-np.log(np.maximum(said, 1e-30)).mean()) if said else float("nan"),
            "accuracy": labels.value(Accuracy()),
            "f1": labels.value(F1()),
        }
        shown = samples_of(len(outputs))
        samples = [Sample(found.names[n], found.labels[n], outputs[n]) for n in shown]
        return Validation(scores, samples, [labels, probabilities_of(names, probs, found.labels, None)])


@dataclass(eq=False)
class ImagesPipeline(Pipeline):
    """The shape and the classes of a run."""

    task: "ImagesTask"
    shape: tuple[int, ...]
    names: list[str]

    def model(self) -> Labeller:
        return self.task.model_config.build(self.shape, len(self.names))

    def predictor(self, model: Labeller, settings: PredictionSettings | None = None) -> ImageClassifier:
        """The trained model; `predict(file or array)` returns a class."""
        scores = ScoredSettings.of(settings).scores
        read = partial(self.task.data.one, clip=len(self.shape) == 4)
        return ImageClassifier(model, self.names, self.shape, read, scores=scores)

    def score(self, model: Labeller, asked: Scoring) -> ImageEvaluation:
        """Accuracy, F1 of each class and confusion matrix; `data` has a folder for each class."""
        own, data = self.task.data, asked.data
        found = own.load(asked.split) if data is None else own.read(read_folders(data, "test"))
        check_shape(found.pixels.shape[1:], self.shape, data or asked.split)
        usual = None
        with suppress(DataError):
            train = own.load("train").labels if own.generated else [one.label for one in own.find("train")]
            usual = Counter(train).most_common(1)[0][0]
        return evaluate(self.predictor(model), found, title=asked.title(own), usual=usual)

    def inspection(self, model: Labeller, settings: InspectionSettings) -> Inspection:
        return inspect_picture(self.predictor(model), self.task.data, settings.text)

    def model_export(self, model: Labeller) -> ModelExport:
        return export_pictures(self.predictor(model), self.task.data)


class ImagesTask(LabelTask[ClassData, ImageModel]):
    """Trains a classifier of pictures or clips."""

    sections: ClassVar = {"data": ClassData, "model": ImageModel}
    prediction_settings: ClassVar = ScoredSettings
    keeps: ClassVar[Sequence[str]] = ("pictures.json",)
    suffixes: ClassVar[Sequence[str]] = ("/",)
    knows = staticmethod(holds_classes)
    check = staticmethod(check_classes)
    note: ClassVar[str] = (
        "accuracy is the share of pictures with the right class, f1 the mean F1 of the classes, loss is nats "
        "per picture."
    )
    evaluation: ClassVar = ImageEvaluation
    target_unit: ClassVar[str] = "image"

    def about(self) -> str:
        return f"classes of {self.data.describe('train')}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        files = self.data.find("valid")
        return PredictExample("", [str(files[0].path)]) if files else None

    def small_model(self) -> Labeller:
        return self.model_config.build(self.data.likely(), 3)

    def rehearse(self) -> Loss:
        shape = self.data.likely()
        model = self.model_config.build(shape, 3)
        x, mask = source(np.zeros((2, *shape), np.uint8), places_of(self.model_config.front, shape))
        return model.loss(LabelBatch(x, mask, torch.tensor([2, 0]), 2))

    def read(self, progress: Progress) -> tuple[LabelledPictures, LabelledPictures]:
        progress("reading pictures", 0, None)
        train, valid = self.data.load("train"), self.data.load("valid")
        check_shape(valid.pixels.shape[1:], train.pixels.shape[1:], self.data.describe("valid"))
        self.data.check_classes("train", train.labels)
        self.data.check_classes("valid", valid.labels)
        return train, valid

    def learn(self, corpus: tuple[LabelledPictures, LabelledPictures], run: Path, progress: Progress) -> None:
        train, _ = corpus
        write_shape(run, train.pixels.shape[1:], sorted(set(train.labels)))

    def training(
        self,
        corpus: tuple[LabelledPictures, LabelledPictures],
        pipeline: ImagesPipeline,
        run: Path,
        progress: Progress,
    ) -> ImagesTraining:
        train, valid = corpus
        progress(f"training pictures: {len(train.labels):,}, {plural(len(pipeline.names), 'class')}", 0, 0)
        places = places_of(self.model_config.front, pipeline.shape)
        return ImagesTraining(pipeline, train, valid, places)

    def open(self, run: Path) -> ImagesPipeline:
        return ImagesPipeline(self, *read_shape(run))
