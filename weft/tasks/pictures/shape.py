"""What a run keeps of its pictures: their shape, and the names of its classes or the colours of its tiles."""

import json
from collections.abc import Sequence
from pathlib import Path

from weft import jsonfile
from weft.errors import CheckpointError

NAME = "pictures.json"


def write_shape(run: Path, shape: Sequence[int], names: Sequence[str] = ()) -> None:
    """Keep the shape of a picture and names."""
    plain = {"shape": list(shape), "names": list(names)}
    (run / NAME).write_text(json.dumps(plain, ensure_ascii=False) + "\n", "utf-8")


def read_shape(run: Path) -> tuple[tuple[int, ...], list[str]]:
    """Shape and names of a run.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        plain = jsonfile.read(run / NAME)
        shape, names = plain["shape"], plain["names"]
        if not all(isinstance(side, int) and side > 0 for side in shape) or not isinstance(names, list):
            raise ValueError("no shape")
    except (OSError, ValueError, KeyError, TypeError):
        raise CheckpointError(f"{run / NAME}: missing or damaged; train the run anew") from None
    return tuple(shape), [str(name) for name in names]
