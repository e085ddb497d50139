"""The pictures that a user gives to a trained model.

Read next: ../listed.py, which reads them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from weft.data import archive
from weft.data.images import PICTURES
from weft.data.lines import read_lines
from weft.errors import DataError
from weft.tasks.predictor import Place, name_of

SUFFIXES = (*PICTURES, ".npy", ".gif")


def pictures_in(source: Path | BinaryIO) -> Iterator[tuple[Path, Place]]:
    """The pictures of a folder or .zip, a single picture, or the pictures of a list with one name per line.

    Raises:
        DataError: the folder has no pictures, or the list cannot be read.
    """
    files = _files(source) if isinstance(source, Path) else None
    if files is not None:
        yield from ((path, Place(str(path))) for path in files)
        return
    for number, line in enumerate(read_lines(source), 1):
        yield Path(line.strip()), Place(name_of(source), number)


def _files(path: Path) -> list[Path] | None:
    """The files; None if the path is a list of names."""
    zipped = path.suffix.lower() == ".zip" and path.is_file()
    if path.is_dir() or zipped:
        every = archive.files(path) if zipped else sorted(path.iterdir())
        found = [each for each in every if each.suffix.lower() in SUFFIXES]
        if not found:
            raise DataError("expected a folder with pictures, got none", path=path)
        return found
    return [path] if path.suffix.lower() in SUFFIXES else None


def check_shape(found: tuple[int, ...], wanted: tuple[int, ...], path: Path) -> None:
    """Check that a picture has the shape that the model was trained on.

    Raises:
        DataError: it has another shape.
    """
    if found != wanted:
        size, need = (" x ".join(map(str, shape)) for shape in (found, wanted))
        raise DataError(f"expected {need}, as the model was trained on, got {size}; rescale it", path=path)
