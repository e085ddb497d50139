"""The format of a run directory, in its run.json. Read next: ../run/training.py, which writes it."""

import platform
from pathlib import Path

import torch

from weft.errors import CheckpointError
from weft.store import files, jsonfile
from weft.version import __version__

FORMAT = 1


class _Written(jsonfile.Schema):
    format: int
    weft: str = "of unknown version"


def write_format(path: Path) -> None:
    """Write format and versions into a new run directory."""
    versions = {"format": FORMAT, "weft": __version__, "torch": torch.__version__}
    about = {**versions, "python": platform.python_version(), "threads": torch.get_num_threads()}
    files.replace(path / "run.json", files.to_json(about))


def check_format(path: Path) -> None:
    """See that this version of Weft reads a run."""
    remedy = "restore it from a copy, or train again with another --run"
    about = jsonfile.load(path / "run.json", _Written, remedy)
    if about.format != FORMAT:
        raise CheckpointError(
            f"{path}: was written in format {about.format} by weft {about.weft}, and weft {__version__} "
            f"reads format {FORMAT}; use that version, or train again with another --run"
        )
