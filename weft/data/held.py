"""Content received instead of a file: its kind, and a temporary file for code that reads files.

Read next: images.py, audio.py, series.py, which read such files.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.errors import ConfigError, DataError

KINDS = {
    b"\x89PNG\r\n\x1a\n": ".png",
    b"\xff\xd8\xff": ".jpg",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    b"RIFF": ".wav",
}
"""First bytes of a file; .webp files also begin with RIFF, but differ in bytes 9 to 12."""


def ending_of(content: bytes) -> str:
    """The extension of an image or recording according to its first bytes; "" for anything else.

    Example:
        >>> ending_of(b"RIFF....WAVE"), ending_of(b"RIFF....WEBP"), ending_of(b"PK")
        ('.wav', '.webp', '')
    """
    if content[8:12] == b"WEBP":
        return ".webp"
    return next((ending for begin, ending in KINDS.items() if content.startswith(begin)), "")


@contextmanager
def held(content: bytes, name: str, ending: str = "") -> Iterator[Path]:
    """A temporary file with this content; errors name `name` instead of it.

    Args:
        content: the file's bytes.
        name: name of the file in error messages.
        ending: the file's extension; by default derived from the content.

    Raises:
        DataError, ConfigError: those raised in the block, with `name` instead of the temporary path.
    """
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder) / f"file{ending or ending_of(content)}"
        path.write_bytes(content)
        try:
            yield path
        except DataError as error:
            if error.path == str(path):
                raise error.at(name, error.line) from None
            raise DataError(str(error).replace(str(path), name)) from None
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), name)) from None
