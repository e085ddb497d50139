"""What a toolkit file in this folder provides, and what the user says about a checkpoint.

Read next: joeynmt.py, an example; assembling.py, what all use.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from weft.errors import CheckpointError, ConfigError
from weft.importing.writing import RunParts


class CheckpointHints(NamedTuple):
    """What the user says about a checkpoint."""

    path: Path  # the checkpoint, a file or a directory
    source: str | None = None  # languages
    target: str | None = None
    train: str = "train"  # prefixes of the data for further training
    valid: str = "valid"
    vocabulary: tuple[Path, ...] = ()  # files elsewhere: one for both, or source and target
    subwords: tuple[Path, ...] = ()  # BPE codes or SentencePiece models, likewise


class Kit(NamedTuple):
    """How checkpoints of a toolkit are recognised and read."""

    name: str  # as its users call it
    looks: str  # what its checkpoint is, for help: "a directory with config.yaml and best.ckpt"
    recognises: Callable[[Path], bool]  # looks at names and, if need be, at the beginning of a file
    read: Callable[[CheckpointHints], RunParts]


def languages(given: CheckpointHints, source: object = None, target: object = None) -> dict[str, str]:
    """The languages for the recipe's section `data`."""
    found = {}
    for name, said, known in (("source", given.source, source), ("target", given.target, target)):
        if said is None and not (isinstance(known, str) and known):
            raise ConfigError(f"{given.path}: does not say its {name} language; give it with --{name} LANG")
        found[name] = said if said is not None else str(known)
    return found


def given_file(files: tuple[Path, ...], option: str, one: int) -> Path | None:
    """The file that the user named for the source (0) or the target (1); None if none was named."""
    if len(files) > 2:
        raise ConfigError(f"--{option}: expected one file for both sides, or two, got {len(files)}")
    if not files:
        return None
    return files[-1] if one else files[0]


def beside(path: Path, *names: str) -> Path:
    """The first of these files in a directory."""
    for name in names:
        if (path / name).is_file():
            return path / name
    raise CheckpointError(f"{path}: expected {' or '.join(names)} in it, got no such file; copy it there")
