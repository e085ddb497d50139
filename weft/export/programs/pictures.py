"""Models that name the class of a picture or a clip."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weft.data.pixels import clip_of, frames_of, pixels
from weft.errors import DataError
from weft.export.programs.common import KINDS, OnnxGraph
from weft.export.programs.picture_files import Given, numbers, opened, picture, read_file


class PictureClassifier:
    """The class of a picture or a clip."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "scores.onnx")
        self.classes, self.shape = about["classes"], about["shape"]
        self.size, self.frames = about["size"], about["frames"]

    def __call__(self, given: Given, scores: bool = False) -> str:
        """The class; with scores also the probability of each class, the likeliest first."""
        probs = self.probabilities(self.read(given))
        best = np.argsort(-probs, kind="stable").tolist()
        shown = [f"{self.classes[n]}={probs[n]:.4f}" for n in best] if scores else []
        return "\t".join([self.classes[best[0]], *shown])

    def probabilities(self, found: np.ndarray) -> np.ndarray:
        """[C] the probability of each class for uint8 pixels in the model's shape."""
        return np.exp(self.graph({"pixels": found[None]})["logp"][0])

    def read(self, given: Given) -> np.ndarray:
        """A file as the model reads it: [height, width, 3] or [time, height, width, 3] uint8."""
        return read_file(given, self.shape, self._content)

    def _content(self, given: Path | bytes) -> np.ndarray:
        is_gif = given.startswith(b"GIF8") if isinstance(given, bytes) else given.suffix.lower() == ".gif"
        found = numbers(given)
        if found is not None:
            clip = clip_of(found)
            if self.size is not None:
                clip = np.stack([pixels(Image.fromarray(frame), self.size) for frame in clip])
        elif is_gif:
            with Image.open(opened(given)) as file:
                clip = np.stack(list(frames_of(file, self.size)))
        else:
            return picture(given, self.size)
        if self.frames is None:
            return clip
        if len(clip) < self.frames:
            raise DataError(f"expected at least {self.frames} frames, got {len(clip)}; use longer clips")
        return clip[np.linspace(0, len(clip) - 1, self.frames).round().astype(int)]


KINDS |= {"pictures": PictureClassifier}
