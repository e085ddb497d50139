"""Pictures as tensors and as files: batches, a user's files, what a run keeps, examples for an export.

Read next: data.py, the sections of a recipe.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from weft.data.files import members, read_member
from weft.data.held import held, name_of
from weft.data.listed import ListForm, files_below, named_files
from weft.data.magic import UNLISTED, kind_of_file
from weft.errors import DataError
from weft.store import jsonfile
from weft.tasks.predictor import Place, Predictor, Raw
from weft.wording import kind_of


def source(pixels: np.ndarray, places: int) -> tuple[Tensor, Tensor]:
    """Pictures [B, ..] as float32 and the mask [B, places] of a front end."""
    x = torch.from_numpy(np.ascontiguousarray(pixels))
    x = x.float() / 127.5 - 1 if x.dtype == torch.uint8 else x.float()
    return x, torch.ones(len(x), places, dtype=torch.bool)


def parts(count: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows` rows."""
    return (slice(at, min(at + rows, count)) for at in range(0, count, rows))


def pictures_in(
    source: Path | BinaryIO, form: ListForm, where: Sequence[Path] = ()
) -> Iterator[tuple[Path, int | str, Place]]:
    """Those of a folder or .zip, one alone, or those of a list in `where`; each with its number or name."""
    files = _files(source, form) if isinstance(source, Path) else None
    if files is not None:
        yield from ((path, path.stem, Place(str(path))) for path in files)
        return
    seen: dict[Path, str] = {}
    for row, path in named_files(source, form, where):
        if seen.setdefault(path, row.text) == row.text:  # the first of its captions
            yield path, path.stem if row.id == "" else row.id, Place(name_of(source), row.number)


def _files(path: Path, form: ListForm) -> list[Path] | None:
    """The files; None if the path is a list of them."""
    zipped = path.suffix.lower() == ".zip" and path.is_file()
    if path.is_dir() or zipped:
        every = members(path) if zipped else files_below(path)
        found = [each for each in every if each.suffix.lower() in form.endings]
        if not found:
            raise DataError("expected a folder with pictures, got none", path=path)
        return found
    kind = kind_of_file(path)
    known = path.suffix.lower() in form.endings or (kind is not None and kind.holds in UNLISTED)
    return [path] if known else None


NUMPY = b"\x93NUMPY"
"""First bytes of a .npy file."""


def picture_of(
    raw: Raw, place: Place, read: Callable[[Path], np.ndarray], shape: tuple[int, ...]
) -> np.ndarray:
    """The pixels of a picture: a file, its bytes, or an array of the shape of the training."""
    if isinstance(raw, np.ndarray):
        check_shape(raw.shape, shape, str(place))
        return raw
    if isinstance(raw, str | Path):
        return read(Path(raw))
    if not isinstance(raw, bytes):
        raise place.refuse(f"expected a picture: its file, bytes or array, got {kind_of(raw)}")
    with held(raw, str(place), ".npy" if raw.startswith(NUMPY) else "") as path:
        return read(path)


def one_picture(raw: Raw, shape: tuple[int, ...]) -> bool:
    """Whether Python gave one picture, not several."""
    if isinstance(raw, np.ndarray):
        return raw.ndim <= len(shape) and raw.dtype != object
    return not isinstance(raw, Iterable) or isinstance(raw, str | bytes)


def check_shape(found: tuple[int, ...], wanted: tuple[int, ...], path: Path | str) -> None:
    """Check that a picture or clip has the shape of those of the training."""
    if found != wanted:
        size, need = (" x ".join(map(str, shape)) for shape in (found, wanted))
        why = f"expected {need}, as in training, got {size}; rescale it, or train with data.size: 32"
        raise DataError(why, path=path)


NAME = "pictures.json"


class SavedShape(jsonfile.Schema):
    """A pictures.json."""

    shape: Annotated[
        list[Annotated[int, jsonfile.Meta(ge=1, le=100_000)]], jsonfile.Meta(min_length=1, max_length=4)
    ]
    names: list[str]


def write_shape(run: Path, shape: Sequence[int], names: Sequence[str] = ()) -> None:
    """Save the shape of the pictures, and names."""
    plain = {"shape": list(shape), "names": list(names)}
    jsonfile.save(run / NAME, plain)


def read_shape(run: Path) -> tuple[tuple[int, ...], list[str]]:
    """Shape and names of a run."""
    saved = jsonfile.load(run / NAME, SavedShape, "train the run again")
    return tuple(saved.shape), saved.names


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
    """Files that a predictor reads, of the first `TRIED`; noise where there are too few."""
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
    member = read_member(path)
    return path.read_bytes() if member is None else member


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
