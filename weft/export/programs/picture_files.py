"""Files of pictures, read by Pillow. Read next: pictures.py; captions.py."""

import io
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

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


Given = str | Path | bytes
"""The name of a file, also inside a .zip (photos.zip/cat.png), or a file's content."""


class PixelError(ValueError):
    """A file that is intact but of the wrong size."""


def read_file(given: Given, shape: Sequence[int], read: Callable[[Any], np.ndarray]) -> np.ndarray:
    """A file in the shape that a model was trained on.

    Args:
        given: see Given.
        shape: expected.
        read: reads a file's content, or the file of a path.
    """
    from PIL import Image

    name = "the picture" if isinstance(given, bytes) else str(given).strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most are about metadata
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            found = read(given if isinstance(given, bytes) else Path(name))
    except PixelError as error:
        raise ValueError(f"{name}: {error}") from None
    except (*DAMAGED, Image.DecompressionBombError) as error:
        raise ValueError(f"{name}: missing, damaged, or not a picture ({error})") from None
    if found.shape != tuple(shape):
        got, wanted = (" x ".join(map(str, each)) for each in (found.shape, shape))
        raise ValueError(f"{name}: expected {wanted}, as the model was trained on, got {got}; rescale it")
    return found


def picture(given: Path | bytes, size: int | None) -> np.ndarray:
    """[height, width, 3] uint8 of a picture, scaled to a square of this size."""
    from PIL import Image

    with Image.open(opened(given)) as file:
        return pixels(file, size)


def pixels(image: Any, size: int | None) -> np.ndarray:
    """[height, width, 3] uint8, upright and on white, scaled to a square if there is a size."""
    from PIL import Image, ImageOps

    image.load()
    with suppress(*DAMAGED):  # damaged metadata of an intact picture
        image = ImageOps.exif_transpose(image)
    whole = eight_bits(image).convert("RGBA")
    whole = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
    if size is not None and whole.size != (size, size):
        whole = whole.resize((size, size), Image.Resampling.LANCZOS)
    return np.array(whole)


def eight_bits(image: Any) -> Any:
    """Grey values of more bits as 8 bits, as in Weft; other pictures as they are."""
    from PIL import Image

    if image.mode != "F" and not image.mode.startswith("I"):
        return image
    values = np.asarray(image)
    least, most = float(values.min()), float(values.max())
    white = 65535 if image.mode != "F" else 1 if most <= 1 else 255
    if not 0 <= least <= most <= white:
        raise PixelError(f"expected grey values from 0 to {white}, got {least:g} to {most:g}; scale them")
    grey = Image.fromarray(np.round(values.astype(np.float32) * np.float32(255 / white)).astype(np.uint8))
    hidden = image.info.get("transparency")
    if isinstance(hidden, int):
        grey.putalpha(Image.fromarray(np.where(values == hidden, 0, 255).astype(np.uint8)))
    return grey


def opened(given: Path | bytes) -> Path | io.BytesIO:
    """What Pillow opens: a path, or the content of a file, also of one inside a .zip."""
    if isinstance(given, bytes):
        return io.BytesIO(given)
    for parent in given.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            with zipfile.ZipFile(parent) as whole, whole.open(given.relative_to(parent).as_posix()) as file:
                content = file.read(LARGEST_MEMBER + 1)
            if len(content) > LARGEST_MEMBER:
                raise PixelError(f"larger than {LARGEST_MEMBER // 2**20} MiB; unpack the archive")
            return io.BytesIO(content)
    return given
