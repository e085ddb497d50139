"""Pictures and recordings in a request: decode base64, and check their size and kind.

Read next: predicting.py.
"""

import base64
import binascii
from typing import Any

from weft.data.held import held
from weft.data.images import measured
from weft.data.magic import kind_of_bytes
from weft.errors import DataError
from weft.serve.limits import Refusal, ServerLimits, kind_of
from weft.tasks.predictor import Reads

WANTED: dict[Reads, str] = {
    "picture": "pictures (PNG, JPEG, GIF, BMP, WebP, TIFF)",
    "sound": "recordings (WAV, FLAC, Ogg, MP3)",
}
"""The file formats of each kind of input, as text for people."""

ITEMS = 8
PIXELS = 4_000_000
"""Maximum number of pixels of a picture, or of all frames of a clip."""


def limited(given: Any, reads: Reads, limits: ServerLimits) -> list[bytes]:
    """The files of a request.

    Args:
        given: base64, optionally with a prefix such as `data:image/png;base64,`; or a list of them.
        reads: the kind of file, one of `WANTED`.
        limits: limits of requests; base64 text is limited by `body_bytes`, not by `characters`.

    Raises:
        Refusal: too many files, invalid base64, or another kind of file.
    """
    items = given if isinstance(given, list) else [given]
    wanted = WANTED[reads]
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
        kind = kind_of_bytes(data)
        if kind is None or kind.holds != reads:
            got = "another kind of file" if kind is None else kind.name
            raise Refusal(400, f"inputs: expected {wanted}, got {got}")
        found.append(data)
    return found


def check_pixels(data: bytes) -> None:
    """Check that a picture is not too large to be decoded.

    Raises:
        Refusal: it has too many pixels, or is damaged.
    """
    try:
        with held(data, "the file") as path:
            count = measured(path)
    except DataError as error:
        raise Refusal(400, f"inputs: {error}") from None
    if count > PIXELS:
        raise Refusal(
            400, f"inputs: expected a picture of at most {PIXELS:,} pixels, got {count:,}; scale it down"
        )
