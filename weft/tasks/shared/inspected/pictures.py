"""Pictures for inspection: the picture, the names of its places and the weights drawn over it.

Read next: tasks/caption/inspected.py, tasks/images/inspected.py, tasks/draw/inspected.py.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.tasks.shared.inspected.inspected import AttentionMap, Pictured


def asked(data: Any, read: Callable[[Path], np.ndarray], text: str | None) -> tuple[np.ndarray, str]:
    """The picture in a file, or one of the validation data, and its name.

    Args:
        data: the section `data` of a task on pictures.
        read: reads a file as pixels or features for the model.
        text: the file's name, or None.

    Raises:
        DataError: the file does not exist or does not fit the model.
    """
    if text is None:
        if data.generated is not None:
            found = data.load("valid")
            return found.pixels[0], f"{found.names[0]}, {data.describe('valid')}"
        path = data.find("valid")[0].path
        return read(path), path.name
    if not text.strip():
        raise DataError("the text is empty; give the name of a picture, or leave it out")
    if len(text) > 1000 or not Path(text).is_file():
        raise DataError(f"{text[:60]}: no such file; give a picture")
    return read(Path(text)), Path(text).name


def places(grid: Sequence[int]) -> list[str]:
    """The name of each place of a front end, in reading order.

    Example:
        >>> places((2, 2)), places((2,))
        (['1,1', '1,2', '2,1', '2,2'], ['1', '2'])
    """
    return [",".join(str(number + 1) for number in place) for place in np.ndindex(*grid)]


def pictured(
    picture: np.ndarray, pieces: Sequence[str], looks: Sequence[AttentionMap], grid: Sequence[int], what: str
) -> Pictured:
    """A picture with the attention of each piece.

    Args:
        picture: pixels, or features, for which only the attention is shown.
        pieces: [T] the pieces.
        looks: attention maps; the first, [T, S], is used.
        grid: the arrangement of the S places.
        what: what the weights are.
    """
    wide = tuple(grid) if len(grid) > 1 else (1, *grid)
    if picture.dtype != np.uint8:
        picture = np.full((*wide, 3), 255, np.uint8)
    rows = looks[0].weights if looks else np.zeros((0, 1))
    over = [(piece, row.reshape(wide)) for piece, row in zip(pieces, rows, strict=False)]
    return Pictured(picture, over, what)
