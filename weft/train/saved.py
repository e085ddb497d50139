"""The contents of a run's checkpoint JSON: state.json in each checkpoint, and checkpoints.json next to them.

Read next: checkpoints.py, which reads and writes them; ../store/jsonfile.py.
"""

from pathlib import Path
from typing import Annotated, Literal

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.train.history import SavedValidation
from weft.train.position import Position
from weft.version import __version__

FORMAT = 1


class WrongFormat(CheckpointError):
    """A checkpoint from an incompatible version; older checkpoints would not help."""


class FormatVersion(jsonfile.Schema):
    """The part of state.json that every version has: which version wrote it."""

    format: int
    weft: str = "of unknown version"


class About(jsonfile.Schema):
    """Settings that a resumed run must share, and where it was trained.

    seed, optimiser: of the settings.
    precision: what `precision: auto` meant.
    machine: processor, torch and threads, as text.
    kernels: written by earlier versions; only their precision is read.
    """

    seed: int | None = None
    optimiser: str = ""
    precision: str = ""
    machine: str = ""
    kernels: dict[str, str] = jsonfile.field(default_factory=dict)


class SavedState(jsonfile.Schema):
    """The contents of a state.json."""

    position: Position
    validations: list[SavedValidation]
    optimiser: dict[str, bool | int | float | str | None]
    about: About
    parts: Annotated[int, jsonfile.Meta(ge=1, le=100_000)] = 1
    cut: dict[str, list[str]] = jsonfile.field(default_factory=dict)


class ModelOrigin(jsonfile.Schema):
    """The updates whose mean model.safetensors is, and its scores."""

    of: Annotated[list[jsonfile.Count], jsonfile.Meta(min_length=1)]
    scores: dict[str, jsonfile.Real | None]


class TriedMean(ModelOrigin):
    """A mean that was tried: at which update, of how many checkpoints, and whether it was better."""

    update: jsonfile.Count
    asked: jsonfile.Count
    taken: bool


class Index(jsonfile.Schema):
    """The contents of checkpoints.json."""

    format: int = FORMAT
    last: jsonfile.Count = 0
    best: jsonfile.Count | None = None
    metric: str = ""
    better: Literal["higher", "lower", ""] = ""
    model: ModelOrigin | None = None
    mean: TriedMean | None = None
    validations: list[SavedValidation] = jsonfile.field(default_factory=list)


def read_state(data: bytes, path: Path) -> SavedState:
    """Parse and check a state.json.

    Args:
        data: bytes of the file.
        path: directory of the checkpoint.

    Raises:
        ValueError: a field is missing, has the wrong type, or contradicts another.
        WrongFormat: an incompatible version wrote it.
    """
    try:
        written = jsonfile.decode(data, FormatVersion)
        if written.format != FORMAT:
            raise WrongFormat(
                f"{path}: expected format {FORMAT}, which weft {__version__} reads, got {written.format}, "
                f"written by weft {written.weft}; use that version or another --run"
            )
        state = jsonfile.decode(data, SavedState)
    except WrongFormat:
        raise
    except ValueError as error:
        raise ValueError(f"state.json: {error}") from None
    at = state.position
    for name, value, most, what in (
        ("epoch", at.epoch, at.update, "updates"),
        ("skipped", at.skipped, at.update, "updates"),
        ("index", at.index, at.batches, "batches in the epoch"),
    ):
        if value > most:
            raise ValueError(
                f"state.json: $.position.{name}: expected at most the {most} {what}, got {value}"
            )
    if path.name != f"step-{at.update:08d}":
        raise ValueError(f"state.json: $.position.update: expected that of {path.name}, got {at.update}")
    return state
