"""Images and video: predicts the class of a picture or a clip.

Read next: data.py, ../pictures/model.py, predictor.py; ../nn/pictures/convolution.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from weft.data.report import Report
from weft.errors import DataError, within
from weft.nn.heads.head import Loss
from weft.tasks.images.data import ClassData
from weft.tasks.images.evaluation import ImageEvaluation
from weft.tasks.images.ready import ImagesPipeline, ImagesTraining
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.pictures.check import check_classes
from weft.tasks.pictures.model import ImageModel, places_of
from weft.tasks.pictures.pictures import read_shape, source, write_shape
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.wording import plural


class Images(Task):
    """Trains a classifier of pictures or clips.

    Args:
        data: the pictures or clips.
        model: the classifier.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ClassData, "model": ImageModel}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("scores",)}
    keeps: ClassVar[Sequence[str]] = ("pictures.json",)
    note: ClassVar[str] = (
        "accuracy is the share of pictures with the right class, f1 the mean F1 of the classes, loss is nats "
        "per picture."
    )
    evaluation: ClassVar = ImageEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "f1": "higher",
    }

    def __init__(self, *, data: ClassData, model: ImageModel) -> None:
        self.data = data
        self.model_config = model

    def about(self) -> str:
        """The pictures."""
        return f"classes of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the parts fit together and that the folders exist."""
        with within("model"):
            self.model_config.build(self.data.likely(), 3)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)

    def rehearse(self) -> Loss:
        """Two pictures or clips."""
        shape = self.data.likely()
        model = self.model_config.build(shape, 3)
        x, mask = source(np.zeros((2, *shape), np.uint8), places_of(self.model_config.front, shape))
        return model.loss(LabelBatch(x, mask, torch.tensor([2, 0]), 2))

    def prepare(self, run: Path, progress: Progress) -> ImagesPipeline:
        """Read all pictures and collect their classes."""
        progress("reading pictures", 0, None)
        train, valid = self.data.load("train"), self.data.load("valid")
        shape, other = train.pixels.shape[1:], valid.pixels.shape[1:]
        if shape != other:
            raise DataError(
                f"{self.data.describe('valid')}: expected {shape}, as in training, got {other}; "
                "rescale them all, for example with data.size: 32"
            )
        names = sorted(set(train.labels))
        self.data.check_classes("train", train.labels)
        self.data.check_classes("valid", valid.labels)
        write_shape(run, shape, names)
        progress(f"training pictures: {len(train.labels):,}, {plural(len(names), 'class')}", 0, 0)
        return ImagesPipeline(self, shape, names, ImagesTraining(self, names, train, valid))

    def open(self, run: Path) -> ImagesPipeline:
        """Read the shape and the classes of the run."""
        return ImagesPipeline(self, *read_shape(run))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check folders of pictures or clips; see ../pictures/check.py."""
        return check_classes(files)
