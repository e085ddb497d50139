"""Small files that claim to be, or decompress to, something much larger."""

import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import soundfile
import zstandard

HUGE = 10**12


def wav(samples: int, length: int, channels: int = 1, rate: int = 16000) -> bytes:
    """A header that claims these sizes, followed by almost nothing."""
    form = struct.pack("<HHIIHH", 1, channels, rate, 2 * rate * channels, 2 * channels, 16)
    chunk = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", samples)
    return b"RIFF" + struct.pack("<I", length) + b"WAVE" + chunk + b"\0" * 8


def flac(seconds: int = 4000) -> bytes:
    """Silence, compressed a thousand times."""
    out = io.BytesIO()
    soundfile.write(out, np.zeros(16000 * seconds, np.int16), 16000, format="FLAC")
    return out.getvalue()


def npy(shape: tuple[int, ...], dtype: str = "<f8", data: bytes = b"\0" * 64) -> bytes:
    """A header with this shape, and any data."""
    head = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def pickled_npy() -> bytes:
    """An array of objects whose pickle would write a file."""
    return npy((1,), "|O", b"\x80\x04cos\nsystem\n(S'touch harm'\ntR.")


def png(width: int, height: int, promised: int = 0) -> bytes:
    """Black, one bit per pixel, compressed a thousand times. The header may claim another side length."""
    deflate = zlib.compressobj(9)
    data = b"".join(deflate.compress(b"\0" * (1 + -(-width // 8)) * 64) for _ in range(height // 64))
    data += deflate.flush()

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", promised or width, promised or height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def gif(width: int, height: int, frames: int) -> bytes:
    """Frames of one pixel each on a large screen: each becomes the whole screen when drawn."""
    out = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = (
        b"\x21\xf9\x04\x04\x01\0\0\0" + b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\0"
    )
    return out + frame * frames + b";"


def repeated(line: bytes, size: int, pack: str) -> bytes:
    """A line repeated up to this size, compressed."""
    piece = line * (2**20 // len(line))
    times = size // len(piece)
    if pack == "gz":
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
            for _ in range(times):
                file.write(piece)
        return out.getvalue()
    if pack == "xz":
        made = lzma.LZMACompressor(preset=1)
        return b"".join([*(made.compress(piece) for _ in range(times)), made.flush()])
    shrink = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*(shrink.compress(piece) for _ in range(times)), shrink.flush()])


def archive(kind: str) -> bytes:
    """A zip or tar with a member outside its folder."""
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as file:
            file.writestr("../harm", "written")
            file.writestr("recipe.yaml", "task: memory\n")
    else:
        with tarfile.open(fileobj=out, mode="w") as tar:
            member = tarfile.TarInfo("../harm")
            member.size = 7
            tar.addfile(member, io.BytesIO(b"written"))
    return out.getvalue()


def sparse(path: Path, size: int, head: bytes = b"") -> None:
    """A file of this size that uses no disk space."""
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


def safetensors(shape: list[int], size: int) -> bytes:
    """A header of one tensor of this many bytes."""
    text = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(text)) + text


def glove(dimensions: int) -> bytes:
    """A word with this many numbers."""
    return b"word" + b" 1" * dimensions + b"\n"
