"""SHA-256 digests, which show files that do not belong together: weights, vocabularies and data.

Weights carry the digests of the vocabularies that they were trained with, and a run keeps those of its data
files in digests.json. Read next: weights.py; ../train/resume.py.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.wording import plural

WHOLE = "whole"
"""Folder in a run with vocabularies of all examples, for a model trained on the validation examples too."""

CONTEXTUAL = "contextual/tokenizer*", "contextual/recipe.yaml"
"""Files of another run that a run keeps, if its model reads words in context from there."""

ANSWERING = "model.safetensors", "tokenizer*", "recipe.yaml"

SETTLED_NANOSECONDS = 2 * 10**9

_known: dict[tuple[object, ...], str] = {}
_reading: ContextVar[dict[Path, None] | None] = ContextVar("reading", default=None)


def file_digest(path: Path) -> str:
    """SHA-256 of a file; a file that has not changed is read once per process."""
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        digest = _known.get(key) or hashlib.file_digest(file, "sha256").hexdigest()
        # A file that is changed again within one tick of the clock would look the same.
        if time.time_ns() > max(found.st_mtime_ns, found.st_ctime_ns) + SETTLED_NANOSECONDS:
            _known[key] = digest
        return digest


@contextmanager
def reading() -> Iterator[dict[Path, None]]:
    """Collect the data files that are read in the block, in order."""
    found: dict[Path, None] = {}
    token = _reading.set(found)
    try:
        yield found
    finally:
        _reading.reset(token)


def note(path: str | Path) -> None:
    """Say that a data file is read now; the functions that open data files call this."""
    found = _reading.get()
    if found is not None:
        found.setdefault(Path(path).absolute())


class Fits(jsonfile.Schema):
    """What weights belong to."""

    kept: dict[str, str] = jsonfile.field(default_factory=dict)
    recipe: dict[str, Any] = jsonfile.field(default_factory=dict)


def kept_files(run: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Digests of the files of a run that match the patterns or CONTEXTUAL, by their path in the run."""
    own = *patterns, *CONTEXTUAL, f"{WHOLE}/tokenizer*"
    paths = sorted({path for pattern in own for path in run.glob(pattern)})
    regular = [path for path in paths if stat.S_ISREG(path.stat().st_mode)]
    return {path.relative_to(run).as_posix(): file_digest(path) for path in regular}


def check_kept(run: Path, now: Mapping[str, str], then: Mapping[str, str], place: str) -> None:
    """Check that a run has the vocabularies that its weights were trained with."""
    wrong = [name for name, digest in then.items() if now.get(name, digest) != digest]
    if wrong:
        more = f" (and {plural(len(wrong) - 1, 'more file')})" if wrong[1:] else ""
        raise CheckpointError(
            f"{place}: was not trained with {run / wrong[0]}{more}: one of the two is from another training; "
            "copy both from the same run, or train again with another --run"
        )


def named_files(options: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Digests of the files and runs that options name, by option; of a run, those of all that answers."""
    paths = {key: value if isinstance(value, tuple) else (value,) for key, value in options.items()}
    found = {
        key: [_content(path) for path in values if isinstance(path, Path)] for key, values in paths.items()
    }
    return {key: content for key, content in found.items() if content}


def _content(path: Path) -> list[str]:
    run = [one for pattern in (*ANSWERING, *CONTEXTUAL) for one in path.glob(pattern)]
    found = [path] if path.is_file() else sorted(run or path.glob("*.safetensors"))
    return [file_digest(one) for one in found]
