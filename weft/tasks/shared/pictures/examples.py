"""Files of pictures to try an exported model on."""

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from weft.data import archive
from weft.errors import DataError
from weft.tasks.predictor import Place, Predictor

SEED = 1
TRIED = 200
"""Maximum number of files that are read to find examples."""


def noise(shape: Sequence[int], rows: int) -> Tensor:
    """[rows, *shape] random uint8."""
    draw = torch.Generator().manual_seed(SEED + rows)
    return torch.randint(256, (rows, *shape), generator=draw, dtype=torch.uint8)


def readable(
    predictor: Predictor[Any], shape: Sequence[int], files: Iterator[bytes], count: int
) -> Sequence[bytes]:
    """Files that a predictor reads, of the first `TRIED`; noise where there are too few.

    Args:
        predictor: of a trained model.
        shape: of its pictures.
        files: their content.
        count: number of files.
    """
    found: list[bytes] = []
    for one in chain(islice(files, TRIED), (encoded(one) for one in noise(shape, count).numpy())):
        with suppress(DataError):
            predictor.parse(one, Place("example"))
            found.append(one)
        if len(found) == count:
            break
    return found


def content(path: Path) -> bytes:
    """The content of a file, also inside a .zip."""
    inside = archive.inside(path)
    return path.read_bytes() if inside is None else archive.read(*inside)


def encoded(pixels: np.ndarray) -> bytes:
    """The content of a file: a picture as PNG, a clip as GIF, features as .npy."""
    out = io.BytesIO()
    if pixels.shape[-1] != 3 or pixels.ndim < 3:
        np.save(out, pixels.astype(np.float32))
    elif pixels.ndim == 3:
        Image.fromarray(pixels).save(out, "png")
    else:
        first, *others = map(Image.fromarray, pixels)
        first.save(out, "gif", save_all=True, append_images=others)
    return out.getvalue()
