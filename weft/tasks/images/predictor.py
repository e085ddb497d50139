"""A trained classifier of pictures or clips: predicts the classes of files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
import torch

from weft.data.held import held
from weft.models import Predictor
from weft.nn.pictures.front import Front
from weft.tasks import predictor
from weft.tasks.pictures.pictures import check_shape, parts, pictures_in, source
from weft.tasks.predictor import Answer, Given, Json, Place, Raw, Reads, read_each

ROWS = 64


class Classified(Answer):
    """The class of a picture.

    Args:
        names: of the classes.
        probs: [C] of each class.
        scores: whether the text contains the probabilities of all classes.
    """

    def __init__(self, names: Sequence[str], probs: np.ndarray, *, scores: bool = False) -> None:
        order = np.argsort(-probs, kind="stable").tolist()
        self._probs = {names[number]: float(probs[number]) for number in order}
        self._scores = scores

    @property
    def label(self) -> str:
        """The most likely class."""
        return next(iter(self._probs))

    def text(self) -> str:
        """The class; with scores also CLASS=PROBABILITY for each class, likeliest first, tab-separated."""
        shown = [f"{name}={prob:.4f}" for name, prob in self._probs.items()] if self._scores else []
        return "\t".join([self.label, *shown])

    def json(self) -> Json:
        """The class, its probability, and the probability of each class."""
        return {"label": self.label, "prob": self._probs[self.label], "probs": dict(self._probs)}


class PictureClassifier(predictor.Predictor[np.ndarray]):
    """Classifies pictures or clips.

    Args:
        model: in evaluation mode, on its device.
        names: of the classes.
        shape: of a picture or clip.
        read: reads a file into an array.
        scores: whether the text contains the probabilities of all classes.
    """

    reads: ClassVar[Reads] = "picture"
    linewise = False
    window = 1

    def __init__(
        self,
        model: Predictor,
        names: Sequence[str],
        shape: tuple[int, ...],
        read: Callable[[Path], np.ndarray],
        *,
        scores: bool = False,
    ) -> None:
        self.model, self.names, self.shape = model, list(names), shape
        self._read = read
        self._scores = scores

    def parse(self, raw: Raw, place: Place) -> np.ndarray:
        """The pixels in a file's content, in the shape that the model was trained on."""
        if not isinstance(raw, bytes):
            raise place.refuse("expected the bytes of a picture")
        with held(raw, str(place)) as path:
            return self.read(path)

    def inputs(self, source: Path | BinaryIO) -> Iterator[Given[np.ndarray]]:
        """A picture or clip, a folder or .zip of them, or a list with the name of one per line."""
        return read_each(source, pictures_in(source), self.read)

    def answers(self, inputs: Sequence[np.ndarray]) -> Iterator[Classified]:
        for picture in inputs:
            yield Classified(self.names, self.probs(picture[None])[0], scores=self._scores)

    def predict(self, raw: str | Path | np.ndarray) -> str:
        """The class of one picture or clip: a file, or an array of the shape the model was trained on."""
        picture = raw if isinstance(raw, np.ndarray) else self.read(Path(raw))
        return next(self.answers([picture])).label

    def read(self, path: Path) -> np.ndarray:
        """A file as the model reads it.

        Raises:
            DataError: it is damaged or has another shape.
        """
        found = self._read(path)
        check_shape(found.shape, self.shape, path)
        return found

    def probs(self, pixels: np.ndarray) -> np.ndarray:
        """Probabilities [N, C] of the classes of pictures [N, ..]."""
        device = next(self.model.parameters()).device
        assert isinstance(self.model.embed, Front)
        found = []
        with torch.inference_mode():
            for part in parts(len(pixels), ROWS):
                x, mask = source(pixels[part], self.model.embed.places)
                found.append(self.model(x.to(device), mask.to(device))[:, 0].exp().float().cpu().numpy())
        return np.concatenate(found)
