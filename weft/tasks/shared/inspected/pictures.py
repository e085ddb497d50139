"""Pictures that are inspected: which one is looked at, what its places are called, weights laid over it.

Read next: tasks/caption/inspected.py, tasks/images/inspected.py, tasks/draw/inspected.py.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.tasks.shared.inspected.inspected import Looks, Pictured


def asked(data: Any, read: Callable[[Path], np.ndarray], text: str | None) -> tuple[np.ndarray, str]:
    """The picture of a file, or one that the run was validated on; and what it is called.

    Args:
        data: the section `data` of a task of pictures.
        read: a file to the pixels or features that the model takes.
        text: the file's name.

    Raises:
        DataError: there is no such file, or it is no such picture.
    """
    if text is None:
        if data.generated is not None:
            found = data.load("valid")
            return found.pixels[0], f"{found.names[0]}, {data.describe('valid')}"
        path = data.find("valid")[0].path
        return read(path), path.name
    if not text.strip():
        raise DataError("the text is empty; a model of pictures is given a file, or nothing")
    if len(text) > 1000 or not Path(text).is_file():
        raise DataError(f"{text[:60]}: no such file; give a picture")
    return read(Path(text)), Path(text).name


def places(grid: Sequence[int]) -> list[str]:
    """What each place of a front end is called, in the order of reading.

    Example:
        >>> places((2, 2)), places((2,))
        (['1,1', '1,2', '2,1', '2,2'], ['1', '2'])
    """
    return [",".join(str(number + 1) for number in place) for place in np.ndindex(*grid)]


def pictured(
    picture: np.ndarray, pieces: Sequence[str], looks: Sequence[Looks], grid: Sequence[int], what: str
) -> Pictured:
    """A picture with what was looked at for each piece.

    Args:
        picture: pixels, or features, of which the attention alone is shown.
        pieces: T of them.
        looks: the first has weights [T, S].
        grid: how the S places lie.
        what: the weights are.
    """
    wide = tuple(grid) if len(grid) > 1 else (1, *grid)
    if picture.dtype != np.uint8:
        picture = np.full((*wide, 3), 255, np.uint8)
    rows = looks[0].weights if looks else np.zeros((0, 1))
    over = [(piece, row.reshape(wide)) for piece, row in zip(pieces, rows, strict=False)]
    return Pictured(picture, over, what)
