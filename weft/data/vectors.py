"""Word vectors in a text file, as word2vec and GloVe write them: a word and its numbers on each line.

word2vec's files begin with a line "words size", GloVe's do not.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from weft.data.lines import read_lines
from weft.errors import DataError


def read_vectors(path: Path, wanted: Collection[str] | None = None) -> tuple[dict[str, np.ndarray], int]:
    """The vectors of the wanted words, and how many numbers each has.

    Args:
        path: of the file, also compressed.
        wanted: words; None for all of them.

    Raises:
        DataError: a line that is no word with as many numbers as the others have.
    """
    found: dict[str, np.ndarray] = {}
    size = 0
    for number, line in enumerate(read_lines(path), 1):
        cells = line.rstrip(" ").split(" ")
        if number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells):
            continue
        size = size or len(cells) - 1
        if len(cells) - 1 != size or size < 1:
            raise DataError(
                f"{path}:{number}: a word and {len(cells) - 1} numbers came, {size or 'some'} are needed; "
                "give a text file of word2vec or GloVe"
            )
        if wanted is not None and cells[0] not in wanted:
            continue
        try:
            vector = np.array([float(cell) for cell in cells[1:]], dtype=np.float32)
        except ValueError:
            vector = np.full(1, np.nan, dtype=np.float32)
        if not np.isfinite(vector).all():
            raise DataError(f"{path}:{number}: a vector needs finite numbers after its word; mend the line")
        found[cells[0]] = vector
    return found, size
