"""Models that name the class of a picture or a clip."""

from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, OnnxGraph
from weft.export.programs.picture_files import Given, PixelError, opened, picture, pixels, read_file

LARGEST_CLIP = 256 * 2**20
"""Maximum bytes of all frames of a .gif, three per pixel."""


class PictureClassifier:
    """The class of a picture or a clip."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "scores.onnx")
        self.classes, self.shape = about["classes"], about["shape"]
        self.size, self.frames = about["size"], about["frames"]

    def __call__(self, given: Given, scores: bool = False) -> str:
        """The class; with scores also the probability of each class, the likeliest first.

        Args:
            given: the name of a file, also inside a .zip (photos.zip/cat.png), or a file's content.
            scores: whether to list all classes.
        """
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
        if isinstance(given, Path) and given.suffix.lower() == ".npy":
            clip = _colours(np.array(np.load(given, mmap_mode="r")))
            if self.size is not None:
                clip = np.stack([self._scaled(frame) for frame in clip])
        elif is_gif:
            clip = self._frames(given)
        else:
            return picture(given, self.size)
        if self.frames is None:
            return clip
        if len(clip) < self.frames:
            raise PixelError(f"expected at least {self.frames} frames, got {len(clip)}; use longer clips")
        return clip[np.linspace(0, len(clip) - 1, self.frames).round().astype(int)]

    def _frames(self, given: Path | bytes) -> np.ndarray:
        from PIL import Image, ImageSequence

        found, total = [], 0
        with Image.open(opened(given)) as file:
            for frame in ImageSequence.Iterator(file):
                found.append(pixels(frame, self.size))
                total += found[-1].nbytes
                if total > LARGEST_CLIP:
                    raise PixelError(f"more than {LARGEST_CLIP // 2**20} MiB of frames; shorten the clip")
        return np.stack(found)

    def _scaled(self, frame: np.ndarray) -> np.ndarray:
        from PIL import Image

        return pixels(Image.fromarray(frame), self.size)


def _colours(array: np.ndarray) -> np.ndarray:
    """The numbers of a .npy as [time, height, width, 3] uint8."""
    if array.dtype.kind not in "uif" or not array.size:
        raise ValueError("expected an array of numbers")
    if array.ndim == 3:
        array = np.repeat(array[..., None], 3, -1)
    if array.ndim != 4 or array.shape[-1] != 3:
        raise ValueError("expected frames x height x width (x 3)")
    most = 1 if array.dtype.kind == "f" else 255
    if not (array.min() >= 0 and array.max() <= most):  # also refuses nan
        raise ValueError(f"expected values from 0 to {most}, got {array.min()} to {array.max()}")
    return (np.round(255 * array) if array.dtype.kind == "f" else array).astype(np.uint8)


KINDS |= {"pictures": PictureClassifier}
