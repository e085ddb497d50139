"""Read the bytes of a file or stream, with decompression and clear errors.

Read next: lines.py.
"""

import bz2
import gzip
import lzma
import shlex
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from weft.data import archive
from weft.errors import DataError, library
from weft.store.digests import note

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")

_PART = 2**20
_SMALL = 2**9  # bytes of zstandard at a time; four may expand to 128 KiB, and larger pieces were no faster

MOST_TIMES = 300
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)

FREE_BYTES = 64 * 2**20
"""A file may unpack to FREE_BYTES or MOST_TIMES its size; text compresses to 1/10, tables to 1/50."""


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
        inside = archive.files(path) if zipfile.is_zipfile(path) else []
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
    inside = archive.files(path)
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
