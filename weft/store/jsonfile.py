"""Read untrusted JSON with size limits, types and clear errors.

The code that owns a file declares its contents as a `Schema`, next to the code that writes it:

    class About(jsonfile.Schema):
        format: jsonfile.Count
        weft: str = ""

and reads it with `load`. Unknown keys are skipped, so that runs of newer versions still open; keys with a
default may be missing, so that runs of older versions do too.
Read next: run_directory.py.
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

from weft.errors import CheckpointError, WeftError
from weft.store import files

LARGEST = 64 * 2**20  # maximum bytes of a file; a vocabulary of 100,000 pieces has 6 million

LOG = 2**30  # maximum bytes of a log; its lines are small, but months of training write many

LINE = 4 * 2**20  # maximum bytes of a line of a log; longer lines are skipped

Count = Annotated[int, Meta(ge=0, le=10**12)]  # a count or an index; larger values are errors

Real = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]  # a finite number

Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
"""A finite number that is not negative, such as seconds."""

T = TypeVar("T")
_MESSAGE = re.compile(r"^(.*?)(?: - at `(.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_EXPLAINED = 2**20  # maximum bytes of a file that is parsed again to show a wrong value


class Schema(msgspec.Struct):
    """The contents of a file: a field for each key, with its type and bounds."""


def plain(form: Schema) -> dict[str, Any]:
    """A form as dicts, lists, strings and numbers."""
    found: dict[str, Any] = msgspec.to_builtins(form)
    return found


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number in the range of float: not bool, NaN, infinity or a larger integer."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def parse(text: str | bytes) -> Any:
    """Parse JSON of any form."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode(text: str | bytes, form: type[T]) -> T:
    """Parse JSON as a form; anything else in it is skipped."""
    try:
        return msgspec.json.decode(text, type=form)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(_message(str(error), text)) from None
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
    """Read a file as a form."""
    try:
        return decode(read_bytes(path, largest), form)
    except FileNotFoundError:
        raise error(f"{path}: is missing or damaged (no such file); {remedy}") from None
    except OSError as trouble:
        raise error(f"{path}: is missing or damaged ({trouble.strerror or trouble}); {remedy}") from trouble
    except ValueError as trouble:
        raise error(f"{path}: is missing or damaged ({trouble}); {remedy}") from trouble


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Write a table as a JSON file, atomically."""
    try:
        files.replace(path, json.dumps(content, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror}); free some space or choose another directory"
        ) from error


def read(path: Path, largest: int = LARGEST) -> Any:
    """Read a JSON file of any form."""
    return parse(read_bytes(path, largest).decode("utf-8"))


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """The bytes of a regular file of limited size."""
    with open(path, "rb", opener=_at_once) as file:
        size = _size(file.fileno(), largest)
        return file.read(size + 1)  # read(largest) would allocate the maximum


def events(path: Path, last_bytes: int = LOG) -> Iterator[dict[str, Any]]:
    """The JSON objects of a log with one per line, in its last bytes; other lines are skipped.

    A log that is missing, too large or not a regular file has none.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            file.seek(
                max(0, _size(file.fileno(), LOG) - last_bytes)
            )  # the line there is skipped if it is cut
            while line := file.readline(LINE):
                whole = line.endswith(b"\n")
                while not whole and (more := file.readline(LINE)):  # skip the rest of a line that is too long
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
        raise ValueError("it is not a regular file")
    if about.st_size > largest:
        raise ValueError(f"it is larger than {largest // 2**20} MiB")
    return about.st_size


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for a writer if the file is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _message(sentence: str, text: str | bytes) -> str:
    """Rewrite a message of msgspec: the place first, then what was expected and found."""
    found = _MESSAGE.match(sentence)
    assert found is not None
    what, route = found[1].replace("`", ""), found[2] or "$"
    what = what[:1].lower() + what[1:]
    if what.startswith("expected ") and ", got " not in what and len(text) <= _EXPLAINED:
        what += _found_value(route, text)
    return f"{route}: {what}"


def _found_value(route: str, text: str | bytes) -> str:
    try:
        value = parse(text)
        for key, place in _STEP.findall(route):
            value = value[key] if key else value[int(place)]
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
    shown = json.dumps(value) if isinstance(value, str | int | float | bool | None) else "a list or table"
    return f", got {shown if len(shown) <= 40 else shown[:39] + '…'}"
