"""A trained classifier of pictures or clips at work."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from weft.errors import DataError
from weft.models import Predictor
from weft.nn.pictures.front import Front
from weft.tasks.shared.pictures.batch import parts, source

ROWS = 64


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
            size, need = (" x ".join(map(str, shape)) for shape in (found.shape, self.shape))
            raise DataError(
                f"expected {need}, as the model was trained on, got {size}; rescale it", path=path
            )
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
