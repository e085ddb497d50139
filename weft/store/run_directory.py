"""A run directory: its lock, its links, none of which may lead outside, and its format, in run.json.

Read next: ../run/training.py, which writes it; ../train/session.py, which locks the run that it trains.
"""

import errno
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.errors import CheckpointError
from weft.store import files, jsonfile
from weft.version import __version__

FORMAT = 1


class _Written(jsonfile.Schema):
    format: int
    weft: str = "of unknown version"


def check_links(path: Path) -> None:
    """Check that nothing in a run leads out of it: a file behind a link would be read or overwritten."""
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
                raise CheckpointError(
                    f"{one}: expected a file or a directory, got a pipe or a device; remove it"
                )


def _loops(link: Path) -> bool:
    try:
        link.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def check_idle(run: Path) -> None:
    """Check that no other process is training a run; writes nothing."""
    try:
        import fcntl

        handle = os.open(run / ".lock", os.O_RDONLY)
    except (ImportError, OSError):
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        sentence = f"{run}: is still being trained; wait until its training has ended"
        raise CheckpointError(sentence) from error
    except OSError:
        return  # a file system without locks
    finally:
        os.close(handle)


class LockedError(CheckpointError):
    """Another process holds a lock."""


@contextmanager
def lock(run: Path, doing: str = "training this run", option: str = "--run") -> Iterator[None]:
    """Lock a directory for this process; the lock ends with the process, even if it is killed."""
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
            f"{run}: cannot be written to ({error.strerror}); choose another directory with {option}"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                f"{run}: another process is {doing}; wait for it, stop it, or choose another {option}"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def write_format(path: Path) -> None:
    """Write format and versions into a new run directory."""
    import torch  # late: commands lock a directory before they need it

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
