"""A trained classifier of pictures or clips: predicts the classes of files.

`inspect_picture` is what `weft inspect` shows, `export_pictures` what `weft export` writes, `evaluate` the
scores next to the most frequent class.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.images import LABELLED
from weft.errors import DataError
from weft.figures.records import Figure
from weft.metrics.accuracy import Accuracy
from weft.metrics.f1 import F1, by_class, confusion, table
from weft.metrics.labels import classes_of
from weft.metrics.scored import ComparedOutputs
from weft.models import Labeller
from weft.nn.pictures.front import Front
from weft.probe import probe
from weft.tasks import predictor
from weft.tasks.answer_list import AnswerList
from weft.tasks.evaluation import speed, unanswered
from weft.tasks.export import Graph, ModelExport
from weft.tasks.images.data import ClassData, LabelledPictures
from weft.tasks.inspection import Inspection, PictureWeights, TokenChoice, asked, places
from weft.tasks.labels.base import ClassEvaluation, LabelBatch, probabilities_of
from weft.tasks.pictures.pictures import (
    check_shape,
    content,
    encoded,
    noise,
    one_picture,
    parts,
    picture_of,
    pictures_in,
    readable,
    source,
)
from weft.tasks.predictor import Answer, Json, ParsedInput, Place, Raw, Reads, predicted, read_each
from weft.wording import plural

ROWS = 64


@dataclass(eq=False)
class PictureAnswer(Answer):
    """The class of a picture."""

    names: Sequence[str]  # of the classes
    probs: np.ndarray  # [C] of each class
    scores: bool  # whether the text contains the probabilities of all classes
    explain: Callable[[int], PictureWeights]  # the weight of each pixel for the class with this number

    @property
    def label(self) -> str:
        """The most likely class."""
        return self.names[int(self.probs.argmax())]

    def ranked(self) -> dict[str, Json]:
        """The probability of each class, likeliest first."""
        order = np.argsort(-self.probs, kind="stable").tolist()
        return {self.names[number]: float(self.probs[number]) for number in order}

    def text(self) -> str:
        """The class; with scores also CLASS=PROBABILITY for each class, likeliest first, tab-separated."""
        shown = [f"{name}={prob:.4f}" for name, prob in self.ranked().items()] if self.scores else []
        return "\t".join([self.label, *shown])

    def json(self) -> Json:
        """The class, its probability, and the probability of each class."""
        return {"label": self.label, "prob": float(self.probs.max()), "probs": self.ranked()}

    def figure(self) -> "Figure | None":
        """A picture beside its pixels, the lighter the more they weighed for its class; None of a clip."""
        from weft.figures.sheets import attended_picture  # imports matplotlib

        found = self.explain(int(self.probs.argmax()))
        if found.pixels.ndim != 3:
            return None
        name, weights = found.looks[-1]
        title = f"{self.label} ({self.probs.max():.1%})"
        return attended_picture(found.pixels, [name], weights[None], title)


class ImageClassifier(predictor.Predictor[np.ndarray]):
    """Classifies pictures or clips.

    Args:
        model: in evaluation mode, on its device.
        names: of the classes.
        shape: of a picture [height, width, channels], or of a clip, with its frames first.
        read: reads a file into an array.
        scores: whether the text contains the probabilities of all classes.

    Example:
        >>> from weft.tasks.pictures.data import ImageModel
        >>> model = ImageModel().build((8, 12, 3), classes=2).eval()
        >>> model.head.bias.data[1] = 9.0  # an untrained model that says dog
        >>> classifier = ImageClassifier(model, ["cat", "dog"], (8, 12, 3), np.load)
        >>> classifier.predict(np.zeros((8, 12, 3), np.uint8))  # [height, width, channels]
        'dog'
    """

    draws = True
    reads: ClassVar[Reads] = "picture"
    file_columns: ClassVar = LABELLED[:2]
    linewise = False
    window = ROWS

    def __init__(
        self,
        model: Labeller,
        names: Sequence[str],
        shape: tuple[int, ...],
        read: Callable[[Path], np.ndarray],
        *,
        scores: bool = False,
    ) -> None:
        self.model, self._names, self._shape = model, list(names), shape
        self._read = read
        self._scores = scores

    def parse(self, raw: Raw, place: Place) -> np.ndarray:
        """The pixels of a file or its bytes, or an array [.., height, width, channels] as in training."""
        return picture_of(raw, place, self.read, self._shape)

    def is_one(self, raw: Raw) -> bool:
        return one_picture(raw, self._shape)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[np.ndarray]]:
        """A picture or clip, a folder or .zip of them, or a list of them."""
        return read_each(
            source, ((path, place) for path, _, place in pictures_in(source, LABELLED)), self.read
        )

    def is_header(self, cells: Sequence[str]) -> bool:
        return LABELLED.names(cells)

    def answers(self, inputs: Sequence[np.ndarray]) -> Iterator[PictureAnswer]:
        for picture, probs in zip(inputs, self.probs(np.stack(inputs)) if inputs else (), strict=True):
            explain = partial(weighed, self, picture)
            yield PictureAnswer(self._names, probs, self._scores, explain)

    def value(self, answer: PictureAnswer) -> str:
        return answer.label

    def labels(self) -> Sequence[str]:
        return self._names

    def classify(self, pictures: Iterable[np.ndarray | str | Path]) -> AnswerList[PictureAnswer]:
        """Like `predict` of many pictures, with the probabilities of each; in a DataFrame the labels."""
        return self.listed(pictures, lambda one: one, lambda one: one.label)

    @property
    def _front(self) -> Front:
        """The front end of the model."""
        assert isinstance(self.model.embed, Front)
        return self.model.embed

    def read(self, path: Path) -> np.ndarray:
        """A file as the model reads it."""
        found = self._read(path)
        check_shape(found.shape, self._shape, path)
        return found

    def probs(self, pixels: np.ndarray) -> np.ndarray:
        """Probabilities [N, C] of the classes of pictures [N, ..]."""
        device = next(self.model.parameters()).device
        found = []
        with torch.inference_mode():
            for part in parts(len(pixels), ROWS):
                x, mask = source(pixels[part], self._front.places)
                found.append(self.model(x.to(device), mask.to(device))[:, 0].exp().float().cpu().numpy())
        return np.concatenate(found)


def inspect_picture(classifier: ImageClassifier, data: ClassData, text: str | None) -> Inspection:
    """A picture or a clip and its class: the probability of each class, and the places that decided it."""
    picture, name = asked(data, classifier.read, text)
    probs = classifier.probs(picture[None])[0]
    number = int(probs.argmax())
    order = np.argsort(-probs, kind="stable")[:12].tolist()
    others = [(classifier._names[n], float(probs[n])) for n in order]
    front = classifier._front
    x, mask = source(picture[None], front.places)
    device = next(classifier.model.parameters()).device
    label = f"{classifier._names[number]} ({probs[number]:.1%})"
    return Inspection(
        text=name,
        answer=label,
        source=places(front.grid),
        batch=LabelBatch(x, mask, torch.tensor([number]), 1).to(device),
        choices=[TokenChoice("", classifier._names[number], float(probs[number]), others)],
        chosen_what="the classes of the picture",
        picture=weighed(classifier, picture, number),
    )


def weighed(classifier: ImageClassifier, picture: np.ndarray, number: int) -> PictureWeights:
    """The weight of each pixel for a class, and if the pool attends, that of each place over all its queries.

    A pixel's weight is its share of |dL/dx . x|, summed over colours, where L is the class's log-probability
    and pixels run from -1 to 1.
    """
    front = classifier._front
    x, mask = source(picture[None], front.places)
    device = next(classifier.model.parameters()).device
    x = x.to(device).requires_grad_()
    with torch.enable_grad(), probe() as seen:
        logp = classifier.model(x, mask.to(device))[0, 0, number]
        (slope,) = torch.autograd.grad(logp, x)
    pixels = (slope * x).sum(-1).abs()[0].detach().float().cpu().numpy()
    looks = [("gradient times pixel", pixels / max(float(pixels.sum()), 1e-12))]
    own = [one for one in seen["attention"] if one.shape[2] == front.places]
    if own:
        weights = own[-1][0].mean(0).detach().float().cpu().numpy()
        looks.insert(0, ("attention of the pool", weights.reshape(front.grid)))
    return PictureWeights(picture, looks, f"what weighed for {classifier._names[number]}")


class PictureClasses(nn.Module):
    """Pixels to log-probabilities."""

    def __init__(self, model: Labeller) -> None:
        super().__init__()
        assert isinstance(model.embed, Front)
        self.model = model
        self.places = model.embed.places

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, *shape] uint8 to [B, C]."""
        x = pixels.float() / 127.5 - 1  # as in ../pictures/pictures.py
        mask = torch.ones(pixels.shape[0], self.places, dtype=torch.bool, device=pixels.device)
        logp: Tensor = self.model(x, mask)[:, 0]
        return logp


def export_pictures(classifier: ImageClassifier, data: ClassData) -> ModelExport:
    """A classifier of pictures or clips as one graph: pixels to the log-probability of each class."""
    shape = classifier._shape
    both = {"pixels": noise(shape, 2)}, {"pixels": noise(shape, 3)}
    settings: dict[str, Any] = {
        "kind": "pictures",
        "classes": classifier._names,
        "shape": list(shape),
        "size": data.size,
        "frames": data.frames,
    }
    graph = Graph("scores", PictureClasses(classifier.model), both, ["logp"])

    def examples(count: int) -> Sequence[bytes]:
        return readable(classifier, shape, _files(data), count)

    return ModelExport([graph], settings, {}, examples, program="pictures")


def _files(data: ClassData) -> Iterator[bytes]:
    """The content of the validation files, or the generated pictures as files."""
    with suppress(DataError, OSError):
        if data.generated is not None:
            yield from map(encoded, data.load("valid").pixels)
        yield from (content(one.path) for one in data.find("valid"))


@dataclass(frozen=True, kw_only=True)
class ImageEvaluation(ClassEvaluation):
    """The classes that a model predicted, and their scores: accuracy and macro F1."""

    def details(self) -> list[str]:
        return [speed(len(self.outputs), "pictures", self.seconds), table(self.rows)]


def evaluate(
    classifier: ImageClassifier, found: LabelledPictures, *, title: str, usual: str | None
) -> ImageEvaluation:
    """Classify and score."""
    given = (ParsedInput(Place(name), one) for name, one in zip(found.names, found.pixels, strict=True))
    answers, wrong, seconds = predicted(classifier, given, PictureAnswer).checked()
    outputs = ["" if one is None else one.label for one in answers]
    probs = [None if one is None else one.probs for one in answers]
    names = classes_of(found.labels, outputs)
    most = usual or Counter(found.labels).most_common(1)[0][0]
    lowest = {"most frequent class": [most] * len(outputs)}
    compared = ComparedOutputs(outputs, found.labels, baselines=lowest, reads="labels")
    return ImageEvaluation(
        title=f"{title}, {plural(len(outputs), 'picture')}{unanswered(wrong)}",
        outputs=outputs,
        wrong=wrong,
        scores=[compared.scored(Accuracy()).counted("picture"), compared.scored(F1())],
        compared=[compared, probabilities_of(classifier._names, probs, found.labels, None)],
        rows=by_class(outputs, found.labels),
        labels=names,
        matrix=confusion(outputs, found.labels, names),
        seconds=seconds,
    )
