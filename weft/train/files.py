"""Write files and directories atomically, even if the program is killed or the machine loses power.

New content is written under a temporary name, flushed to disk and renamed; then the rename is flushed too.
Names that begin with a dot are leftovers. Read next: checkpoints.py.
"""

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft.errors import CheckpointError

WRITING = ".writing-"
REMOVING = ".removing-"


def write(path: Path, data: bytes) -> None:
    """A new file, flushed to the disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def flush_directory(path: Path) -> None:
    """Flush the names in a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, data: bytes) -> None:
    """Put a file in the place of an older one: readers see the old one or the new one."""
    temporary = path.with_name(f"{WRITING}{path.name}")
    try:
        write(temporary, data)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def write_directory(path: Path, contents: dict[str, bytes]) -> None:
    """A directory with these files, in the place of an older one of that name."""
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
    """Remove a directory; it is under its name whole, or not at all."""
    doomed = path.with_name(f"{REMOVING}{path.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    os.rename(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what a kill left behind in a directory."""
    for path in [*directory.glob(f"{WRITING}*"), *directory.glob(f"{REMOVING}*")]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def to_json(value: Any) -> bytes:
    """JSON as bytes; a number that is not finite would not be JSON and is refused."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def alone(path: Path) -> None:
    """See that nothing in a run leads out of it: a link would be read, or written to, in its place.

    Raises:
        CheckpointError: a link out of it, a pipe or a device.
    """
    if _loops(path):
        raise CheckpointError(f"{path}: is a link to itself; name the run directory")
    root = path.resolve()
    for place, folders, names in os.walk(path):
        for one in (Path(place) / name for name in (*folders, *names)):
            mode = one.lstat().st_mode
            if stat.S_ISLNK(mode) and _loops(one):
                raise CheckpointError(f"{one}: is a link to itself; put the file itself there")
            if stat.S_ISLNK(mode) and not one.resolve().is_relative_to(root):
                raise CheckpointError(
                    f"{one}: is a link out of the run ({os.readlink(one)[:200]}); put the file itself there"
                )
            if not (stat.S_ISLNK(mode) or stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise CheckpointError(f"{one}: is a pipe or a device, and no run has such; remove it")


def _loops(link: Path) -> bool:
    try:
        link.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


@contextmanager
def claim(run: Path) -> Iterator[None]:
    """Hold a run directory for this process alone; the claim ends with the process, however it ends.

    Raises:
        CheckpointError: another process holds it, or it cannot be written to.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        yield
        return
    try:
        run.mkdir(parents=True, exist_ok=True)
        handle = os.open(run / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CheckpointError(
            f"{run}: cannot be written to ({error.strerror}); choose another directory with --run"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"{run}: another process trains this run; wait for it, stop it, or choose another --run"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)
