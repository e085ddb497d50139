"""The one reader of JSON that somebody else may have written: bounded, typed, and refused in one sentence.

The code that owns a file declares what is in it as a `Form` beside the code that writes it:

    class About(jsonfile.Form):
        format: jsonfile.Count
        weft: str = ""

and reads it with `load`. Keys that the form does not name are skipped without being built, so that a run of
a newer version still opens; keys with a default may be missing, so that a run of an older one does.
Read next: run.py.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeGuard, TypeVar

import msgspec
from msgspec import Meta as Meta
from msgspec import field as field

from weft import files
from weft.errors import CheckpointError, WeftError

LARGEST = 64 * 2**20
"""Bytes of a file that is read; a vocabulary of 100,000 pieces takes 6 million."""

LOG = 2**30
"""Bytes of a log that is read: one line in it is small, the lines of months are many."""

LINE = 4 * 2**20
"""Bytes of a line of a log; a longer one is left out."""

Count = Annotated[int, Meta(ge=0, le=10**12)]
"""How many there are of something, or which one; more than a training can count is a mistake."""

Positive = Annotated[int, Meta(ge=1, le=10**12)]
"""A count that cannot be zero."""

Real = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""A finite number."""

Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
"""A finite number that cannot be negative, such as seconds."""

T = TypeVar("T")
_TOLD = re.compile(r"^(.*?)(?: - at `(.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_EXPLAINED = 2**20  # bytes of a file that is read once more to say what stands at the wrong place


class Form(msgspec.Struct):
    """What stands in a file: a field for each key, with its type and bounds."""


def plain(form: Form) -> dict[str, Any]:
    """A form as tables, lists, texts and numbers alone, as it would be written."""
    found: dict[str, Any] = msgspec.to_builtins(form)
    return found


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number that a float holds: no bool, NaN, infinity, or integer beyond.

    Example:
        >>> [is_number(one) for one in (3, 0.5, True, 10**400, float("nan"))]
        [True, True, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def parse(text: str | bytes) -> Any:
    """What JSON says, whatever it is; for what is too free for a form.

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


def decode(text: str | bytes, form: type[T]) -> T:
    """What JSON says, as a form; nothing is built of what the form does not hold.

    Raises:
        ValueError: it is no JSON, or does not fit: where in it, what was expected, what was found.

    Example:
        >>> decode('{"words": ["a", 3]}', dict[str, list[str]])
        Traceback (most recent call last):
        ValueError: $[...][1]: expected str, got int
        >>> decode('[-1]', list[Count])
        Traceback (most recent call last):
        ValueError: $[0]: expected int >= 0, got -1
    """
    try:
        return msgspec.json.decode(text, type=form)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(_told(str(error), text)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON: {error}") from None


def load(
    path: Path,
    form: type[T],
    remedy: str,
    *,
    largest: int = LARGEST,
    error: type[WeftError] = CheckpointError,
) -> T:
    """What a file says, as a form.

    Args:
        path: of the file.
        form: what must be in it.
        remedy: what the user can do where it is not, the end of the sentence.
        largest: bytes that are read.
        error: the class of the refusal.

    Raises:
        WeftError: of that class; the file is missing, too large, no ordinary file, or does not fit the form.
    """
    try:
        return decode(read_bytes(path, largest), form)
    except FileNotFoundError:
        raise error(f"{path}: is missing or damaged (no such file); {remedy}") from None
    except OSError as trouble:
        raise error(f"{path}: is missing or damaged ({trouble.strerror or trouble}); {remedy}") from trouble
    except ValueError as trouble:
        raise error(f"{path}: is missing or damaged ({trouble}); {remedy}") from trouble


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Write a table as a JSON file, atomically.

    Raises:
        CheckpointError: no space left, no such directory, no permission.
    """
    try:
        files.replace(path, json.dumps(content, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror}); free some space or choose another directory"
        ) from error


def read(path: Path, largest: int = LARGEST) -> Any:
    """What a JSON file says, whatever it is; for what is too free for a form.

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
        size = _size(file.fileno(), largest)
        return file.read(size + 1)  # read(largest) would make room for the most


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The tables in a log of a JSON line each; a line that is none, as the last one may be, is left out.

    A log that is missing, too large, or no ordinary file has none.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            _size(file.fileno(), LOG)
            while line := file.readline(LINE):
                whole = line.endswith(b"\n")
                while not whole and (more := file.readline(LINE)):  # too long; what follows is no line
                    line, whole = b"", more.endswith(b"\n")
                try:
                    event = parse(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield event
    except (OSError, ValueError):
        return


def _size(handle: int, largest: int) -> int:
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is no ordinary file")
    if about.st_size > largest:
        raise ValueError(f"it is larger than {largest // 2**20} MiB")
    return about.st_size


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody to write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _told(sentence: str, text: str | bytes) -> str:
    """msgspec's sentence as ours: the place first, and what stands there."""
    found = _TOLD.match(sentence)
    assert found is not None
    what, route = found[1].replace("`", ""), found[2] or "$"
    what = what[:1].lower() + what[1:]
    if what.startswith("expected ") and ", got " not in what and len(text) <= _EXPLAINED:
        what += _standing(route, text)
    return f"{route}: {what}"


def _standing(route: str, text: str | bytes) -> str:
    try:
        value = parse(text)
        for key, place in _STEP.findall(route):
            value = value[key] if key else value[int(place)]
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
    shown = json.dumps(value) if isinstance(value, str | int | float | bool | None) else "a list or table"
    return f", got {shown if len(shown) <= 40 else shown[:39] + '…'}"
