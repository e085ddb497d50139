"""Read files inside a .zip without unpacking it; photos.zip/cat.png is a path like any other.

Nothing is written to disk, so member names cannot escape the archive. Read next: images.py.
"""

import zipfile
import zlib
from functools import lru_cache
from pathlib import Path

from weft.errors import DataError
from weft.store.digests import note

LARGEST = 64 * 2**20
"""Maximum size of an unpacked member, in bytes."""

_BROKEN = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


def inside(path: Path) -> tuple[Path, str] | None:
    """The archive and the member named by a path; None if the path does not pass through a .zip file."""
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            return parent, path.relative_to(parent).as_posix()
    return None


def is_file(path: Path) -> bool:
    """Whether the file exists, on disk or in an archive."""
    if path.is_file():
        return True
    found = inside(path)
    return found is not None and found[1] in _open(found[0]).NameToInfo


def read_member(archive: Path, member: str) -> bytes:
    """The bytes of a member."""
    path = archive / member
    note(archive)
    if member not in _open(archive).NameToInfo:
        raise DataError("no such file in the archive; check the name", path=path)
    try:
        with _open(archive).open(member) as file:
            content = file.read(LARGEST + 1)  # do not trust the size in the header
    except _BROKEN:
        raise DataError(
            "damaged or encrypted; write the archive again without a password", path=path
        ) from None
    if len(content) > LARGEST:
        raise DataError(f"larger than {LARGEST // 2**20} MiB; unpack the archive if you trust it", path=path)
    return content


def files(archive: Path) -> list[Path]:
    """The paths of all files in an archive, sorted by name."""
    return [archive / name for name in sorted(_names(archive)) if not name.endswith("/")]


def folders(archive: Path) -> list[Path]:
    """Where to look for names in an archive: at the top, and in the top-level folder if there is only one."""
    if archive.suffix.lower() != ".zip" or not archive.is_file():
        return []
    names = _names(archive)
    tops = {name.partition("/")[0] for name in names if "/" in name}
    flat = any("/" not in name for name in names)
    return [archive] if flat or len(tops) != 1 else [archive, archive / tops.pop()]


def _names(archive: Path) -> list[str]:
    """The names of the members, without what macOS adds about them."""
    names = _open(archive).NameToInfo
    return [name for name in names if name.rpartition("/")[2][:1] != "." and name[:9] != "__MACOSX/"]


def _open(archive: Path) -> zipfile.ZipFile:
    try:
        return _opened(archive, archive.stat().st_mtime_ns)
    except _BROKEN:
        raise DataError("not a .zip, or damaged; copy or download it again", path=archive) from None


@lru_cache(maxsize=4)
def _opened(archive: Path, changed: int) -> zipfile.ZipFile:
    """Cached, because reading a long list of members takes time."""
    return zipfile.ZipFile(archive)
