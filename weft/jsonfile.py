"""JSON that somebody else may have written: of a bounded size, never too deep, and out of an ordinary file.

Every file of a run beside the weights and the recipe is read here. Read next: run.py.
"""

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

LARGEST = 64 * 2**20
"""Bytes of a file that is read; a vocabulary of 100,000 pieces takes 6 million."""

LOG = 2**30
"""Bytes of a log that is read: one line in it is small, the lines of months are many."""


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number that a float holds: no bool, NaN, infinity, or integer beyond.

    Example:
        >>> [is_number(one) for one in (3, 0.5, True, 10**400, float("nan"))]
        [True, True, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def parse(text: str | bytes) -> Any:
    """What JSON says.

    Raises:
        ValueError: it is no JSON, no UTF-8, or nested too deeply.

    Example:
        >>> parse('{"a": [1]}')
        {'a': [1]}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read(path: Path, largest: int = LARGEST) -> Any:
    """What a JSON file says.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, a device or a pipe, or no JSON.
    """
    return parse(read_bytes(path, largest).decode("utf-8"))


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """A whole file, if it is an ordinary one and not larger than that.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, a device or a pipe.
    """
    with open(path, "rb", opener=_at_once) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is no ordinary file")
        if about.st_size > largest:
            raise ValueError(f"it is larger than {largest // 2**20} MiB")
        return file.read(about.st_size + 1)  # read(most) would make room for the most


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The tables in a log of a JSON line each; a line that is none, as the last one may be, is left out.

    A log that is missing, too large, or no ordinary file has none.
    """
    try:
        whole = read_bytes(path, LOG)
    except (OSError, ValueError):
        return
    for line in whole.split(b"\n"):
        try:
            event = parse(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody to write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
