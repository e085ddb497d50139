"""A trained classifier of pictures or clips at work, and what it scores beside the most frequent class."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from weft.errors import DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import ClassRow, by_class, macro_f1, table
from weft.metrics.metric import Score
from weft.metrics.scored import Scored, as_json, report, scored
from weft.models import Predictor
from weft.nn.pictures.front import Front
from weft.tasks.images.data import Classed
from weft.tasks.shared.pictures.batch import parts, source

ROWS = 64


class ImageEvaluation(NamedTuple):
    """Classified pictures and all that is known of them."""

    title: str
    outputs: list[str]
    scored: list[Scored]  # accuracy, macro F1
    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] reference by answer
    seconds: float

    @property
    def accuracy(self) -> Score:
        """The share of pictures with the right class."""
        return self.scored[0].score

    def text(self) -> str:
        """For a reader."""
        speed = f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} pictures/s, {self.seconds:.1f} s"
        return "\n".join([self.title, *report(self.scored), speed, table(self.rows)])

    def json(self) -> str:
        """For a program."""
        everything = {
            "title": self.title,
            "scores": as_json(self.scored),
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
            "seconds": self.seconds,
        }
        return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


class Seer:
    """Says of which class a picture or clip is.

    Args:
        model: in evaluation mode, on its device.
        names: of the classes.
        shape: of a picture or clip.
        read: a file to an array.
    """

    def __init__(
        self,
        model: Predictor,
        names: Sequence[str],
        shape: tuple[int, ...],
        read: Callable[[Path], np.ndarray],
    ) -> None:
        self.model, self.names, self.shape = model, list(names), shape
        self._read = read

    def predict(self, picture: str | Path | np.ndarray) -> str:
        """The class of one picture or clip: a file, or an array of the shape the model was trained on."""
        if isinstance(picture, str | Path):
            picture = self.read(Path(picture))
        return self.names[int(self.probs(picture[None])[0].argmax())]

    def read(self, path: Path) -> np.ndarray:
        """A file as the model reads it.

        Raises:
            DataError: damaged, or another shape.
        """
        found = self._read(path)
        if found.shape != self.shape:
            came, need = (" x ".join(map(str, shape)) for shape in (found.shape, self.shape))
            raise DataError(f"{path}: {came} came, the model was trained on {need}; scale it to that")
        return found

    def probs(self, pixels: np.ndarray) -> np.ndarray:
        """[N, ..] pictures to [N, C] probabilities."""
        device = next(self.model.parameters()).device
        assert isinstance(self.model.embed, Front)
        found = []
        with torch.inference_mode():
            for part in parts(len(pixels), ROWS):
                x, mask = source(pixels[part], self.model.embed.places)
                found.append(self.model(x.to(device), mask.to(device))[:, 0].exp().float().cpu().numpy())
        return np.concatenate(found)


def evaluate(seer: Seer, found: Classed, *, title: str, usual: str | None) -> ImageEvaluation:
    """Classify and score.

    Args:
        seer: at work.
        found: pictures and classes.
        title: which data.
        usual: the most frequent class of the training data; of these where that is gone.
    """
    begun = time.perf_counter()
    outputs = [seer.names[n] for n in seer.probs(found.pixels).argmax(1)]
    seconds = time.perf_counter() - begun
    names = classes(outputs, found.labels)
    most = usual or Counter(found.labels).most_common(1)[0][0]
    lowest = {"most frequent class": [most] * len(outputs)}
    accuracy = scored(Accuracy(), outputs, found.labels, baselines=lowest)
    return ImageEvaluation(
        title=f"{title}, {len(outputs):,} pictures",
        outputs=outputs,
        scored=[accuracy.counted("picture"), macro_f1(outputs, found.labels, baselines=lowest)],
        rows=by_class(outputs, found.labels),
        labels=names,
        matrix=confusion(outputs, found.labels, names),
        seconds=seconds,
    )
