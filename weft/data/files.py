"""Read the bytes of a file, a stream or a member of a .zip, with decompression and clear errors.

photos.zip/cat.png is a path like any other. Nothing of an archive is written to disk, so names in it cannot
escape it. Read next: lines.py; images.py.
"""

import bz2
import gzip
import lzma
import shlex
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from weft.errors import DataError, library
from weft.store.digests import note

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")

_PART = 2**20
_SMALL = 2**9  # bytes of zstandard at a time; four may expand to 128 KiB, and larger pieces were no faster

MOST_TIMES = 300
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)

FREE_BYTES = 64 * 2**20
"""A file may unpack to FREE_BYTES or MOST_TIMES its size; text compresses to 1/10, tables to 1/50."""

MEMBER_BYTES = 64 * 2**20  # maximum size of an unpacked member, in bytes

_BROKEN_ZIP = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


def file_bytes(path: str | Path) -> Iterator[bytes]:
    """The bytes of a file; gzip, bzip2, xz and zstandard are recognised by their first bytes.

    A .zip holds one file, beside those of macOS about it.
    """
    path = Path(path)
    note(path)
    try:
        with open(path, "rb") as file:
            start = file.read(6)
    except OSError as error:
        raise unreadable(path, error) from error
    if not start:
        raise DataError("the file is empty; give one with at least one line", path=path)
    if start.startswith(b"\x1f\x8b"):
        parts = _measured(_parts(gzip.open, path), path)
    elif start.startswith(b"BZh"):
        parts = _measured(_parts(bz2.open, path), path)
    elif start.startswith(b"PK\x03\x04") and path.suffix.lower() == ".zip":
        parts = _measured(_zipped(path), path)
    elif start.startswith(b"\xfd7zXZ\x00"):
        parts = _measured(_parts(lzma.open, path), path)
    elif start.startswith(b"\x28\xb5\x2f\xfd"):
        library("zstandard", "zstd", str(path))
        parts = _measured(_zstandard(path), path)
    elif path.suffix in COMPRESSED:
        raise DataError(
            "not compressed, although its name says so; rename it or compress it again", path=path
        )
    else:
        parts = _parts(open, path)
    return _guarded(parts, path)


def bare(path: Path) -> Path:
    """A path without the ending of a compressed file; of a .zip, with the name of the one file in it."""
    if path.suffix.lower() == ".zip" and path.is_file() and not path.with_suffix("").suffix:
        inside = members(path) if zipfile.is_zipfile(path) else []
        return path.with_name(inside[0].name) if len(inside) == 1 else path
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def stream_bytes(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of an open stream, each part as soon as it arrives."""
    read = getattr(stream, "read1", stream.read)
    while part := read(_PART):
        yield part


def unreadable(path: str | Path, error: OSError) -> DataError:
    """The error for a path that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return DataError("no such file; check the name and the directory", path=path)
    if isinstance(error, IsADirectoryError):
        return DataError("a directory; name a file in it", path=path)
    why = error.strerror or error
    return DataError(f"cannot be read ({why}); check the file and its permissions", path=path)


def _parts(opener: Callable[..., Any], path: Path) -> Iterator[bytes]:
    with opener(path, "rb") as file:
        while part := file.read(_PART):
            yield part


def _measured(parts: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """The same parts; raises an error if they exceed the size limits."""
    most = max(FREE_BYTES, MOST_TIMES * path.stat().st_size)
    total = 0
    for part in parts:
        total += len(part)
        if total > most:
            raise DataError(
                f"unpacks to more than {MOST_TIMES} times its size, which no text does; unpack it "
                "yourself if you trust it",
                path=path,
            )
        yield part


def _zipped(path: Path) -> Iterator[bytes]:
    inside = members(path)
    if len(inside) != 1:
        shown = ", ".join(one.name for one in inside[:3])
        how = f"unpack it: unzip {shlex.quote(str(path))}"
        raise DataError(f"expected one file in the archive, got {len(inside)} ({shown}); {how}", path=path)
    with zipfile.ZipFile(path) as whole, whole.open(inside[0].relative_to(path).as_posix()) as file:
        while part := file.read(_PART):
            yield part


def _zstandard(path: Path) -> Iterator[bytes]:
    # Frame by frame, because the library's own reader does not notice a truncated file.
    import zstandard

    with open(path, "rb") as file:
        frame = None
        held: list[bytes] = []
        size = 0
        while part := file.read(_SMALL):
            while part:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                try:
                    held.append(frame.decompress(part))
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from error
                size += len(held[-1])
                part, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
                if size >= _PART:
                    yield b"".join(held)
                    held, size = [], 0
        yield b"".join(held)
        if frame is not None:
            raise EOFError("the last frame is cut short")


def _guarded(parts: Iterator[bytes], path: Path) -> Iterator[bytes]:
    try:
        yield from parts
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(path, error) from error
        why = f"damaged compressed file ({str(error).rstrip('.')}); copy or download it again"
        raise DataError(why, path=path) from error


def member_of(path: Path) -> tuple[Path, str] | None:
    """The archive and the member named by a path; None if the path does not pass through a .zip file."""
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            return parent, path.relative_to(parent).as_posix()
    return None


def is_stored(path: Path) -> bool:
    """Whether the file exists, on disk or in an archive."""
    if path.is_file():
        return True
    found = member_of(path)
    return found is not None and found[1] in _archive(found[0]).NameToInfo


def read_member(path: Path) -> bytes | None:
    """The bytes of a file in an archive; None if the path does not pass through a .zip file."""
    if (found := member_of(path)) is None:
        return None
    archive, member = found
    note(archive)
    if member not in _archive(archive).NameToInfo:
        raise DataError("no such file in the archive; check the name", path=path)
    try:
        with _archive(archive).open(member) as file:
            content = file.read(MEMBER_BYTES + 1)  # do not trust the size in the header
    except _BROKEN_ZIP:
        raise DataError(
            "damaged or encrypted; write the archive again without a password", path=path
        ) from None
    if len(content) > MEMBER_BYTES:
        raise DataError(
            f"larger than {MEMBER_BYTES // 2**20} MiB; unpack the archive if you trust it", path=path
        )
    return content


def members(archive: Path) -> list[Path]:
    """The paths of all files in an archive, sorted by name."""
    return [archive / name for name in sorted(_member_names(archive)) if not name.endswith("/")]


def archive_folders(archive: Path) -> list[Path]:
    """Where to look for names in an archive: at the top, and in the top-level folder if there is only one."""
    if archive.suffix.lower() != ".zip" or not archive.is_file():
        return []
    names = _member_names(archive)
    tops = {name.partition("/")[0] for name in names if "/" in name}
    flat = any("/" not in name for name in names)
    return [archive] if flat or len(tops) != 1 else [archive, archive / tops.pop()]


def _member_names(archive: Path) -> list[str]:
    """The names of the members, without what macOS adds about them."""
    names = _archive(archive).NameToInfo
    return [name for name in names if name.rpartition("/")[2][:1] != "." and name[:9] != "__MACOSX/"]


def _archive(archive: Path) -> zipfile.ZipFile:
    try:
        return _opened(archive, archive.stat().st_mtime_ns)
    except _BROKEN_ZIP:
        raise DataError("not a .zip, or damaged; copy or download it again", path=archive) from None


@lru_cache(maxsize=4)
def _opened(archive: Path, changed: int) -> zipfile.ZipFile:
    """Cached, because reading a long list of members takes time."""
    return zipfile.ZipFile(archive)
