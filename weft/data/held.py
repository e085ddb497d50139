"""Content received instead of a file: its kind, and a temporary file for code that reads files.

Read next: images.py, audio.py, series.py, which read such files.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.data.magic import kind_of_bytes
from weft.errors import ConfigError, DataError


def ending_of(content: bytes) -> str:
    """The extension of an image or recording according to its first bytes; "" for anything else.

    Example:
        >>> ending_of(b"RIFF....WAVE"), ending_of(b"RIFF....WEBP"), ending_of(b"PK")
        ('.wav', '.webp', '')
    """
    kind = kind_of_bytes(content)
    return kind.ending if kind is not None and kind.holds in ("picture", "sound") else ""


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
                why = error.why.replace(str(path), name).replace(str(path.with_suffix("")), name)
                raise DataError(why, path=name, line=error.line) from None
            raise DataError(str(error).replace(str(path), name)) from None
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), name)) from None
