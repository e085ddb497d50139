"""Pixels of pictures of every mode that Pillow opens: 8 bits, three colours, upright, on white.

The program of an exported model contains this file: ../export/programs/__init__.py.
"""

import struct
import tokenize
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import BITSPERSAMPLE, PHOTOMETRIC_INTERPRETATION, SAMPLEFORMAT, TiffImageFile

from weft.errors import DataError

MOST_GREY = 65535  # white of a greyscale image of 16 bits

DEPTHS = (8, 10, 12, 14, 16)  # bits of grey values that cameras write into 16

WHITE_IS_0, SIGNED = 0, 2
"""Values of the TIFF tags PhotometricInterpretation and SampleFormat."""

LARGEST_CLIP = 256 * 2**20  # maximum bytes of all frames of a .gif, three per pixel

# Pillow passes on the errors of its decoders, which fail in many ways on damaged files.
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
BROKEN = (*_DECODERS, UnidentifiedImageError, struct.error, Image.DecompressionBombError, Warning)
"""What Pillow raises for damaged files."""

BROKEN_ARRAY = (*_DECODERS, zipfile.BadZipFile, tokenize.TokenError)
"""What NumPy raises for damaged files."""


def pixels(
    picture: Image.Image, size: int | None, path: Path | None = None, notes: list[str] | None = None
) -> np.ndarray:
    """[height, width, 3] uint8 of an open image, upright and on white; notes gets what was a guess."""
    bits = _named_bits(picture)
    picture.load()
    white_is_0 = isinstance(picture, TiffImageFile) and _white_is_0(picture, path)
    with suppress(*BROKEN):  # damaged metadata of an intact image
        picture = ImageOps.exif_transpose(picture)
    eight = _eight_bits(picture, path, bits, [] if notes is None else notes)
    whole = (ImageOps.invert(eight) if white_is_0 else eight).convert("RGBA")
    on_white = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
    if size is not None and on_white.size != (size, size):
        on_white = on_white.resize((size, size), Image.Resampling.LANCZOS)
    return np.array(on_white)


def _white_is_0(picture: TiffImageFile, path: Path | None) -> bool:
    """Whether a greyscale TIFF has 0 for white, where Pillow does not invert it: with more than 8 bits."""
    if picture.mode == "L" and picture.tag_v2.get(SAMPLEFORMAT) == (SIGNED,):
        raise DataError("grey values of 8 bits with a sign, which are not read; save them without", path=path)
    inverted = picture.tag_v2.get(PHOTOMETRIC_INTERPRETATION) == WHITE_IS_0
    return inverted and (picture.mode == "F" or picture.mode.startswith("I"))


def _named_bits(picture: Image.Image) -> int:
    """The bits of grey values that a file names: the chunk sBIT of a PNG, BitsPerSample of a TIFF."""
    if isinstance(picture, TiffImageFile):
        return int(picture.tag_v2.get(BITSPERSAMPLE, (16,))[0])
    if not isinstance(picture, PngImageFile) or not picture.mode.startswith("I") or picture.fp is None:
        return 16
    place = picture.fp.tell()
    picture.fp.seek(0)
    head = picture.fp.read(2**12).partition(b"IDAT")[0]
    picture.fp.seek(place)
    return next(iter(head.partition(b"\0\0\0\x01sBIT")[2]), 16)


def _eight_bits(picture: Image.Image, path: Path | None, bits: int, notes: list[str]) -> Image.Image:
    """Grey values of more bits as 8 bits, where Pillow would cut them at 255; others as they are."""
    if picture.mode == "LAB":
        raise DataError("colours in LAB, which are not read; save it as RGB", path=path)
    if picture.mode != "F" and not picture.mode.startswith("I"):
        return picture
    values = np.asarray(picture)
    least, most = float(values.min()), float(values.max())
    if picture.mode == "F":
        if not 0 <= least <= most <= 255:
            raise DataError(
                f"expected floats from 0 to 1 or to 255, got {least:g} to {most:g}; scale them", path=path
            )
        white = 1 if most <= 1 else 255
    elif 0 <= least <= most < 2**bits and bits < 16:
        white = 2**bits - 1
    elif 0 <= least <= most <= MOST_GREY:
        bits = next(each for each in DEPTHS if most < 2**each) if most else 16
        white = 2**bits - 1
        if bits < 16:
            notes.append(f"grey values to {most:,.0f} in 16 bits, read as {bits} bits: {white:,} is white")
    else:
        raise DataError(
            f"expected grey values from 0 to {MOST_GREY:,}, got {least:,.0f} to {most:,.0f}; scale them",
            path=path,
        )
    grey = Image.fromarray(np.round(values.astype(np.float32) * np.float32(255 / white)).astype(np.uint8))
    hidden = picture.info.get("transparency")
    if isinstance(hidden, int):
        grey.putalpha(Image.fromarray(np.where(values == hidden, 0, 255).astype(np.uint8)))
    return grey


def frames_of(file: Image.Image, size: int | None, path: Path | None = None) -> Iterator[np.ndarray]:
    """All frames of an open clip; the arguments are those of `pixels`."""
    total = 0
    for frame in ImageSequence.Iterator(file):
        picture = pixels(frame, size, path)
        total += picture.nbytes
        if total > LARGEST_CLIP:
            raise DataError(
                f"more than {LARGEST_CLIP // 2**20} MiB of frames; give a shorter or smaller clip", path=path
            )
        yield picture


def clip_of(array: np.ndarray, path: Path | None = None) -> np.ndarray:
    """Numbers [T, H, W] or [T, H, W, 3] as [T, H, W, 3] uint8; floats are from 0 to 1."""
    if array.ndim == 3:
        array = np.repeat(array[..., None], 3, -1)
    if array.ndim != 4 or array.shape[-1] != 3:
        shape = " x ".join(map(str, array.shape))
        raise DataError(f"expected frames x height x width (x 3), got {shape}", path=path)
    if array.dtype.kind == "f":
        if array.min() < 0 or array.max() > 1:
            raise DataError(f"expected values from 0 to 1, got {array.min():g} to {array.max():g}", path=path)
        array = np.round(255 * array)
    if array.min() < 0 or array.max() > 255:
        raise DataError(f"expected values from 0 to 255, got {array.min()} to {array.max()}", path=path)
    return array.astype(np.uint8)
