"""Inputs that are files: a source is one file, a folder of files, or a list of file names.

Read next: pictures/reading.py, which finds pictures; ../predictor.py, which uses them.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from weft.errors import DataError
from weft.tasks.predictor import Given, Place

In = TypeVar("In")


def read_each(
    source: Path | BinaryIO, files: Iterable[tuple[Path, Place]], read: Callable[[Path], In]
) -> Iterator[Given[In]]:
    """Read each file of a source; a file that cannot be read gives an error instead of its content.

    Args:
        source: given by the user.
        files: files of the source, each with its place for errors: the file, or the line that names it.
        read: reads a file.

    Raises:
        DataError: the source is a single file and cannot be read.
    """
    for path, place in files:
        try:
            yield Given(place, read(path))
        except DataError as error:
            if path == source:
                raise
            yield Given(place, error)
