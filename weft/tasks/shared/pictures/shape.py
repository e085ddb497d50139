"""What a run saves about its pictures: their shape, and the names of classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from weft.store import jsonfile

NAME = "pictures.json"


class SavedShape(jsonfile.Form):
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
    """Shape and names of a run.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    saved = jsonfile.load(run / NAME, SavedShape, "train the run again")
    return tuple(saved.shape), saved.names
