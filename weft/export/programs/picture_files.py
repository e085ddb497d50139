"""Files of pictures, read by Pillow. Read next: pictures.py; captions.py."""

import io
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weft.data.pixels import BROKEN, BROKEN_ARRAY, pixels
from weft.errors import DataError

LARGEST_MEMBER = 64 * 2**20  # maximum bytes of a file in a .zip
DAMAGED = (*BROKEN, *BROKEN_ARRAY, RuntimeError, zlib.error)
"""What Pillow, NumPy and zipfile raise for damaged files."""

Given = str | Path | bytes
"""The name of a file, also inside a .zip (photos.zip/cat.png), or a file's content."""


def read_file(given: Given, shape: Sequence[int], read: Callable[[Any], np.ndarray]) -> np.ndarray:
    """A file in the shape that a model was trained on."""
    name = "the picture" if isinstance(given, bytes) else str(given).strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most are about metadata
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            found = read(given if isinstance(given, bytes) else Path(name))
    except DataError as error:
        raise ValueError(f"{name}: {error}") from None
    except DAMAGED as error:
        raise ValueError(f"{name}: missing, damaged, or not a picture ({error})") from None
    if found.shape != tuple(shape):
        got, wanted = (" x ".join(map(str, each)) for each in (found.shape, shape))
        raise ValueError(f"{name}: expected {wanted}, as the model was trained on, got {got}; rescale it")
    return found


def picture(given: Path | bytes, size: int | None) -> np.ndarray:
    """[height, width, 3] uint8 of a picture, scaled to a square of this size."""
    with Image.open(opened(given)) as file:
        return pixels(file, size)


def numbers(given: Path | bytes) -> np.ndarray | None:
    """The finite numbers of a .npy; None for another file."""
    if isinstance(given, bytes) and given.startswith(b"\x93NUMPY"):
        found = np.array(np.load(io.BytesIO(given)))
    elif isinstance(given, Path) and given.suffix.lower() == ".npy":
        found = np.array(np.load(given, mmap_mode="r"))
    else:
        return None
    if found.dtype.kind not in "uif" or not found.size or not np.isfinite(found).all():
        raise DataError("expected an array of finite numbers")
    return found


def opened(given: Path | bytes) -> Path | io.BytesIO:
    """What Pillow opens: a path, or the content of a file, also of one inside a .zip."""
    if isinstance(given, bytes):
        return io.BytesIO(given)
    for parent in given.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            with zipfile.ZipFile(parent) as whole, whole.open(given.relative_to(parent).as_posix()) as file:
                content = file.read(LARGEST_MEMBER + 1)
            if len(content) > LARGEST_MEMBER:
                raise DataError(f"larger than {LARGEST_MEMBER // 2**20} MiB; unpack the archive")
            return io.BytesIO(content)
    return given
