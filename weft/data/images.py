"""Pictures and clips from a user's files; what is wrong is named by file and line.

Classes: a folder with a folder for each class. Read next: captions.py; shapes.py, generated ones.
"""

import base64
import io
import struct
import tokenize
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageSequence, UnidentifiedImageError

from weft.data import archive
from weft.errors import DataError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm")
CLIPS = (".gif", ".npy")
LARGEST_CLIP = 256 * 2**20
"""Bytes of all frames of a .gif, three for a pixel."""


class Labelled(NamedTuple):
    """A picture or clip with its class."""

    path: Path
    label: str


def read_picture(path: Path, size: int | None = None) -> np.ndarray:
    """A picture as [height, width, 3] uint8; what is transparent becomes white.

    Args:
        path: anything that Pillow reads, also within a .zip (photos.zip/cat.png).
        size: scale to a square of this many pixels a side; None leaves it as it is.

    Raises:
        DataError: missing, or no picture.
    """
    with _opened(path) as file:
        return _pixels(file, size)


def measured(path: Path) -> int:
    """Pixels of a picture, the frames of a clip counted, without reading them.

    Raises:
        DataError: missing, or no picture.
    """
    with _opened(path) as file:
        return file.width * file.height * int(getattr(file, "n_frames", 1))


def read_clip(path: Path, size: int | None = None, frames: int | None = None) -> np.ndarray:
    """A clip as [frames, height, width, 3] uint8: a .gif, or a .npy of [T, H, W] or [T, H, W, 3].

    Args:
        path: the file.
        size: scale each frame to a square.
        frames: so many, evenly spaced, are kept; None keeps all.

    Raises:
        DataError: missing, damaged, or no clip.
    """
    if path.suffix.lower() == ".npy":
        clip = _clip_of(read_array(path), path)
        if size is not None:
            clip = np.stack([_pixels(Image.fromarray(frame), size) for frame in clip])
    else:
        with _opened(path) as file:
            clip = np.stack(list(_frames(file, size, path)))
    if frames is None:
        return clip
    if len(clip) < frames:
        raise DataError(
            f"expected at least {frames} frames, got {len(clip)}; use longer clips or fewer frames", path=path
        )
    return clip[np.linspace(0, len(clip) - 1, frames).round().astype(int)]


def read_array(path: Path) -> np.ndarray:
    """The numbers of a .npy file.

    Raises:
        DataError: missing, damaged, not numbers, or not finite.
    """
    try:
        # Mapped, so that a header which promises more than the file has is refused before room is made.
        mapped = np.load(path, mmap_mode="r")
        found = np.array(mapped) if isinstance(mapped, np.memmap) else None
    except _BROKEN_ARRAY as error:
        raise _broken(path, error, "array") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "uif" or not found.size:
        raise DataError("expected an array of numbers; save one with numpy.save", path=path)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise DataError("expected finite values; correct or remove the file", path=path)
    return found


def is_clip(path: Path) -> bool:
    """Whether a file's ending is that of a clip."""
    return path.suffix.lower() in CLIPS


def stack(paths: Sequence[Path], arrays: Sequence[np.ndarray], remedy: str) -> np.ndarray:
    """Arrays of one shape as one.

    Raises:
        DataError: shapes that differ, with the two files.
    """
    for path, array in zip(paths, arrays, strict=True):
        if array.shape != arrays[0].shape:
            ours, theirs = (" x ".join(map(str, one.shape)) for one in (array, arrays[0]))
            raise DataError(f"{ours}, but {paths[0]} has {theirs}; {remedy}", path=path)
    return np.stack(arrays)


def read_folders(path: Path) -> list[Labelled]:
    """Pictures or clips in a folder for each class, in the order of their names.

    Raises:
        DataError: no folder, or classes without pictures.
    """
    if not path.is_dir():
        raise DataError("no such folder; give one with a subfolder for each class", path=path)
    found = []
    for folder in sorted(each for each in path.iterdir() if each.is_dir() and each.name[0] != "."):
        files = [each for each in sorted(folder.iterdir()) if each.suffix.lower() in PICTURES + CLIPS]
        if not files:
            raise DataError(
                "expected pictures or clips, got none; add some or remove the folder", path=folder
            )
        found += [Labelled(file, folder.name) for file in files]
    if not found:
        raise DataError("expected a subfolder for each class, got none", path=path)
    return found


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """A picture file; what Pillow says of a damaged one, warnings too, becomes one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = archive.inside(path)
            with Image.open(path if found is None else io.BytesIO(archive.read(*found))) as file:
                yield file
    except DataError:  # which is a ValueError, as a decoder's may be
        raise
    except _BROKEN as error:
        raise _broken(path, error) from None


# Pillow lets the errors of its decoders through, which trip over damaged files in every way there is.
_DECODERS = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    MemoryError,
)
_BROKEN = (*_DECODERS, UnidentifiedImageError, struct.error, Image.DecompressionBombError, Warning)

_BROKEN_ARRAY = (*_DECODERS, zipfile.BadZipFile, tokenize.TokenError)


def _pixels(picture: Image.Image, size: int | None) -> np.ndarray:
    whole = picture.convert("RGBA")
    on_white = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
    if size is not None and on_white.size != (size, size):
        on_white = on_white.resize((size, size), Image.Resampling.LANCZOS)
    return np.array(on_white)


def _frames(file: Image.Image, size: int | None, path: Path) -> Iterator[np.ndarray]:
    """Every frame; one that repeats the one before takes a few bytes of the file, so their sum is bounded."""
    total = 0
    for frame in ImageSequence.Iterator(file):
        picture = _pixels(frame, size)
        total += picture.nbytes
        if total > LARGEST_CLIP:
            raise DataError(
                f"more than {LARGEST_CLIP // 2**20} MiB of frames; give a shorter or smaller clip", path=path
            )
        yield picture


def _clip_of(array: np.ndarray, path: Path) -> np.ndarray:
    if array.ndim == 3:
        array = np.repeat(array[..., None], 3, -1)
    if array.ndim != 4 or array.shape[-1] != 3:
        shape = " x ".join(map(str, array.shape))
        raise DataError(f"expected frames x height x width (x 3), got {shape}", path=path)
    if array.dtype.kind == "f":
        if array.min() < 0 or array.max() > 1:
            raise DataError(
                f"values from {array.min():g} to {array.max():g}; 0 to 1, or whole numbers to 255", path=path
            )
        array = np.round(255 * array)
    if array.min() < 0 or array.max() > 255:
        raise DataError(f"expected values from 0 to 255, got {array.min()} to {array.max()}", path=path)
    return array.astype(np.uint8)


def _broken(path: Path, error: BaseException, what: str = "picture") -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError("no such file; check the name and the directory", path=path)
    if isinstance(error, IsADirectoryError):
        return DataError("a directory; name a file in it", path=path)
    if isinstance(error, NotADirectoryError) and archive.inside(path):
        return DataError("arrays are not read from within a .zip; unpack it", path=path)
    again = "with numpy.save" if what == "array" else "as PNG or JPEG"
    return DataError(f"damaged, or no {what}; save it again {again}, or remove it", path=path)


def data_uri(picture: np.ndarray) -> str:
    """A picture as text that a browser shows: data:image/png;base64,..."""
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "png")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")
