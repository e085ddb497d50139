"""Models that name the class of a picture or a clip; Pillow reads the files."""

import io
import struct
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, Graph

LARGEST_CLIP = 256 * 2**20
"""Maximum bytes of all frames of a .gif, three per pixel."""
LARGEST_MEMBER = 64 * 2**20
"""Maximum bytes of a file in a .zip."""

DAMAGED = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
    Warning,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What Pillow, NumPy and zipfile raise for damaged files."""


class PictureClassifier:
    """The class of a picture or a clip."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = Graph(folder / "scores.onnx")
        self.classes, self.shape = about["classes"], tuple(about["shape"])
        self.size, self.frames = about["size"], about["frames"]

    def __call__(self, given: str | Path | bytes, scores: bool = False) -> str:
        """The class; with scores also the probability of each class, the likeliest first.

        Args:
            given: the name of a file, also inside a .zip (photos.zip/cat.png), or a file's content.
            scores: whether to list all classes.
        """
        probs = self.probabilities(self.read(given))
        best = np.argsort(-probs, kind="stable").tolist()
        shown = [f"{self.classes[n]}={probs[n]:.4f}" for n in best] if scores else []
        return "\t".join([self.classes[best[0]], *shown])

    def probabilities(self, pixels: np.ndarray) -> np.ndarray:
        """[C] the probability of each class for uint8 pixels in the model's shape."""
        return np.exp(self.graph({"pixels": pixels[None]})["logp"][0])

    def read(self, given: str | Path | bytes) -> np.ndarray:
        """A file as the model reads it: [height, width, 3] or [time, height, width, 3] uint8."""
        from PIL import Image

        name = "the picture" if isinstance(given, bytes) else str(given).strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = self._clip(given) if _is_clip(given) else self._picture(given)
        except _Refused as error:
            raise ValueError(f"{name}: {error}") from None
        except (*DAMAGED, Image.DecompressionBombError) as error:
            raise ValueError(f"{name}: missing, damaged, or no picture ({error})") from None
        if found.shape != self.shape:
            got, wanted = (" x ".join(map(str, shape)) for shape in (found.shape, self.shape))
            raise ValueError(f"{name}: expected {wanted}, as the model was trained on, got {got}; rescale it")
        return found

    def _picture(self, given: str | Path | bytes) -> np.ndarray:
        from PIL import Image

        with Image.open(_file(given)) as file:
            return self._pixels(file)

    def _clip(self, given: str | Path | bytes) -> np.ndarray:
        """All frames, or as many evenly spaced ones as the model reads."""
        from PIL import Image, ImageSequence

        found, total = [], 0
        if isinstance(given, bytes) or str(given).strip().lower().endswith(".gif"):
            with Image.open(_file(given)) as file:
                for frame in ImageSequence.Iterator(file):
                    found.append(self._pixels(frame))
                    total += found[-1].nbytes
                    if total > LARGEST_CLIP:
                        raise _Refused(f"more than {LARGEST_CLIP // 2**20} MiB of frames; shorten the clip")
            clip = np.stack(found)
        else:
            clip = _colours(np.array(np.load(str(given).strip(), mmap_mode="r")))
            if self.size is not None:
                clip = np.stack([self._pixels(Image.fromarray(frame)) for frame in clip])
        if self.frames is None:
            return clip
        if len(clip) < self.frames:
            raise _Refused(f"expected at least {self.frames} frames, got {len(clip)}; use longer clips")
        return clip[np.linspace(0, len(clip) - 1, self.frames).round().astype(int)]

    def _pixels(self, picture: Any) -> np.ndarray:
        """[height, width, 3] on white, scaled to the model's size."""
        from PIL import Image

        whole = picture.convert("RGBA")
        whole = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
        if self.size is not None and whole.size != (self.size, self.size):
            whole = whole.resize((self.size, self.size), Image.Resampling.LANCZOS)
        return np.array(whole)


class _Refused(ValueError):
    """A file that is intact but of the wrong size."""


def _is_clip(given: str | Path | bytes) -> bool:
    if isinstance(given, bytes):
        return given.startswith(b"GIF8")
    return str(given).strip().lower().endswith((".gif", ".npy"))


def _file(given: str | Path | bytes) -> Path | io.BytesIO:
    """What Pillow opens."""
    if isinstance(given, bytes):
        return io.BytesIO(given)
    path = Path(str(given).strip())
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            with zipfile.ZipFile(parent) as whole, whole.open(path.relative_to(parent).as_posix()) as file:
                content = file.read(LARGEST_MEMBER + 1)
            if len(content) > LARGEST_MEMBER:
                raise _Refused(f"larger than {LARGEST_MEMBER // 2**20} MiB; unpack the archive")
            return io.BytesIO(content)
    return path


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
