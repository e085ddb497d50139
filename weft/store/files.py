"""Write files and directories atomically, even if the program is killed or the machine loses power.

New content is written under a temporary name, flushed to disk and renamed; then the rename is flushed too.
Names that begin with a dot are leftovers. Also here: the cache, for data that can be computed again (token
stores, compiled blocks), and the recipes that come with Weft. Read next: jsonfile.py.
"""

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from weft.errors import ConfigError, DataError

_PACKAGE = Path(__file__).parents[1]
WRITING = ".writing-"
REMOVING = ".removing-"

ELSEWHERE = "free some space or choose another place"
AGAIN = "free some space and run the same command again"
"""What to do where a file cannot be written."""


def cache_directory() -> Path:
    """$WEFT_CACHE, or the folder weft in the user's cache directory."""
    own = os.environ.get("WEFT_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft"


def recipes_folder() -> Path:
    """The recipes that come with Weft: in the package if installed, next to it in a checkout."""
    inside = _PACKAGE / "recipes"
    return inside if inside.is_dir() else _PACKAGE.parent / "recipes"


@contextmanager
def refusals(path: Path, remedy: str = ELSEWHERE, what: str = "written") -> Iterator[None]:
    """Turn an OSError in the block into a DataError that names the path and the remedy."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be {what} ({error.strerror or error}); {remedy}", path=path) from error


def write(path: Path, data: bytes) -> None:
    """Write a new file and flush it to disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def status(path: Path) -> os.stat_result | None:
    """What the system says about a path; None if nothing is there.

    Other errors, such as a missing permission, are raised; from Python 3.14 on, Path.is_file hides them.
    """
    try:
        return path.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def is_file(path: Path) -> bool:
    """Whether a path is a file; raises OSError if the system does not say."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def is_dir(path: Path) -> bool:
    """Whether a path is a directory; raises OSError if the system does not say."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def claim(folder: Path, known: str, holds: str, remedy: str) -> bool:
    """Create a folder that `known` inside it describes, or find it; refuse one with other files.

    Returns whether `known` is there; the refusal says what such a folder `holds`, and a remedy.
    """
    with refusals(folder, remedy, "used"):
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder}: expected a directory, got a file; {remedy}")
        begun = (folder / known).exists()
        if not begun and folder.exists() and any(one.name[0] != "." for one in folder.iterdir()):
            raise ConfigError(f"{folder}: is not empty and has no {holds}; {remedy}")
        folder.mkdir(parents=True, exist_ok=True)
    return begun


def flush_directory(path: Path) -> None:
    """Flush the names in a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end of the block; an error keeps the old file."""
    temporary = _temporary(path)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    flush_directory(path.parent)


def replace(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers see either the old or the new one."""
    with replacing(path) as file:
        file.write(data)


def create(path: Path, data: bytes) -> bool:
    """Write a file unless it exists; False if it does, for example because another process was faster."""
    temporary = _temporary(path)
    try:
        write(temporary, data)
        os.link(temporary, path)  # unlike a rename, it fails where the file exists
    except FileExistsError:
        return False
    finally:
        _remove(temporary)
    return True


def write_directory(path: Path, contents: dict[str, bytes]) -> None:
    """Write a directory with these files, replacing an older one of that name."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, data in contents.items():
            write(temporary / name, data)
        flush_directory(temporary)
        if path.exists():
            remove_directory(path)
        os.rename(temporary, path)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    flush_directory(path.parent)


def remove_directory(path: Path) -> None:
    """Remove a directory atomically, by renaming it first."""
    doomed = path.with_name(f"{REMOVING}{path.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    os.rename(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove temporary files that killed processes left in a directory."""
    for path in [*directory.glob(f"{WRITING}*"), *directory.glob(f"{REMOVING}*")]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def to_json(value: Any) -> bytes:
    """JSON as bytes."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def _temporary(path: Path) -> Path:
    """A name next to the file that is unique even across machines."""
    return path.with_name(f"{WRITING}{path.name}-{secrets.token_hex(4)}")


def _remove(path: Path) -> None:
    with suppress(OSError):  # may fail for the same reason as the write
        path.unlink(missing_ok=True)
