"""Inputs that are files: a source is one file, a folder of them, or a list of their names.

Read next: pictures/reading.py, which finds pictures; ../predictor.py, what is done with them.
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
    """Read each file of a source; a file that cannot be read has the reason in the place of its content.

    Args:
        source: of the user.
        files: in it, each with the place that an error names: the file itself, or the line that names it.
        read: a file.

    Raises:
        DataError: the source is itself the one file, and cannot be read.
    """
    for path, place in files:
        try:
            yield Given(place, read(path))
        except DataError as error:
            if path == source:
                raise
            yield Given(place, error)
