"""Files inside a .zip, read where they are: photos.zip/cat.png is a path like any other.

Nothing is unpacked to the disk, so no name of a member leads anywhere. Read next: images.py.
"""

import zipfile
import zlib
from functools import lru_cache
from pathlib import Path

from weft.errors import DataError

LARGEST = 64 * 2**20
"""Bytes of a member once it is unpacked."""

_BROKEN = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


def inside(path: Path) -> tuple[Path, str] | None:
    """The archive and the member that a path names; None where no part of it is a .zip file."""
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            return parent, path.relative_to(parent).as_posix()
    return None


def is_file(path: Path) -> bool:
    """Whether there is such a file, on the disk or in an archive.

    Raises:
        DataError: the archive is damaged.
    """
    if path.is_file():
        return True
    found = inside(path)
    return found is not None and found[1] in _open(found[0]).NameToInfo


def read(archive: Path, member: str) -> bytes:
    """The bytes of a member.

    Raises:
        DataError: missing, damaged, locked by a password, or larger than `LARGEST`.
    """
    path = archive / member
    if member not in _open(archive).NameToInfo:
        raise DataError("no such file in the archive; check the name", path=path)
    try:
        with _open(archive).open(member) as file:
            content = file.read(LARGEST + 1)  # what the head says of the size may be a lie
    except _BROKEN:
        raise DataError(
            "damaged or encrypted; write the archive again without a password", path=path
        ) from None
    if len(content) > LARGEST:
        raise DataError(f"larger than {LARGEST // 2**20} MiB; unpack the archive if you trust it", path=path)
    return content


def files(archive: Path) -> list[Path]:
    """Every file of an archive, as a path, in the order of their names.

    Raises:
        DataError: the archive is damaged.
    """
    return [archive / name for name in sorted(_open(archive).NameToInfo) if not name.endswith("/")]


def folders(archive: Path) -> list[Path]:
    """Where names may be looked up in an archive: at its top, and in the one folder that holds everything.

    Raises:
        DataError: the archive is damaged.
    """
    if archive.suffix.lower() != ".zip" or not archive.is_file():
        return []
    tops = {name.partition("/")[0] for name in _open(archive).NameToInfo if "/" in name}
    flat = any("/" not in name for name in _open(archive).NameToInfo)
    return [archive] if flat or len(tops) != 1 else [archive, archive / tops.pop()]


def _open(archive: Path) -> zipfile.ZipFile:
    try:
        return _opened(archive, archive.stat().st_mtime_ns)
    except _BROKEN:
        raise DataError("not a .zip, or damaged; copy or download it again", path=archive) from None


@lru_cache(maxsize=4)
def _opened(archive: Path, changed: int) -> zipfile.ZipFile:
    """Its list of members is long, so it is read once."""
    return zipfile.ZipFile(archive)
