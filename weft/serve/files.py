"""Files in a request: base64 text to bytes, small enough and of a kind that is read; a name while they are.

Read next: predicting.py.
"""

import base64
import binascii
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft.data.images import measured
from weft.errors import DataError
from weft.serve.limits import Limits, Refusal, kind_of

KINDS = {
    b"\x89PNG\r\n\x1a\n": ".png",
    b"\xff\xd8\xff": ".jpg",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    b"RIFF": ".wav",
}
"""How files begin; RIFF begins a .webp too, which says so at its ninth byte."""

ITEMS = 8
PIXELS = 4_000_000
"""Of a picture, the frames of a clip counted."""


def limited(given: Any, task: str, limits: Limits) -> list[bytes]:
    """The files of a request.

    Args:
        given: base64, with or without `data:image/png;base64,` before it; or a list of them.
        task: that reads them.
        limits: their texts are bounded by the body, not by its characters.

    Raises:
        Refusal: too many, no base64, or nothing that the task reads.
    """
    items = given if isinstance(given, list) else [given]
    wanted = "wav files" if task == "speech" else "pictures (PNG, JPEG, GIF, BMP, WebP)"
    if not items or len(items) > ITEMS:
        raise Refusal(400, f"inputs: expected 1 to {ITEMS} files, got {len(items)}")
    found = []
    for item in items:
        if not isinstance(item, str):
            raise Refusal(400, f"inputs: expected {wanted} as base64, got {kind_of(item)}")
        if len(item) > limits.body_bytes:
            raise Refusal(
                413, f"inputs: a file is larger than {limits.body_bytes:,} bytes; send a smaller one"
            )
        try:
            data = base64.b64decode(item.rpartition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            raise Refusal(400, f"inputs: expected {wanted} as base64, got other text") from None
        if (_ending(data) == ".wav") != (task == "speech") or not _ending(data):
            raise Refusal(400, f"inputs: expected {wanted}, got another kind of file")
        found.append(data)
    return found


@contextmanager
def kept(data: bytes) -> Iterator[Path]:
    """A file of these bytes, gone afterwards; what is wrong with it is said without its name.

    Raises:
        Refusal: a picture of too many pixels, or a damaged file.
    """
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder) / f"file{_ending(data)}"
        path.write_bytes(data)
        try:
            if path.suffix != ".wav" and measured(path) > PIXELS:
                raise Refusal(
                    400,
                    f"inputs: expected a picture of at most {PIXELS:,} pixels, got a larger one; "
                    "scale it down",
                )
            yield path
        except DataError as error:
            said = error.at("the file", error.line) if error.path == str(path) else error
            raise Refusal(400, f"inputs: {said}") from None


def _ending(data: bytes) -> str:
    if data[8:12] == b"WEBP":
        return ".webp"
    return next((ending for begin, ending in KINDS.items() if data.startswith(begin)), "")
