"""Content received instead of a file: its kind, and a temporary file for code that reads files.

Read next: images.py, audio.py, series.py, which read such files.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.data.magic import kind_of_bytes
from weft.errors import ConfigError, DataError


@contextmanager
def held(content: bytes, name: str, ending: str = "") -> Iterator[Path]:
    """A temporary file with this content; errors name `name` instead of it."""
    kind = kind_of_bytes(content)
    if not ending and kind is not None and kind.holds in ("picture", "sound"):
        ending = kind.ending
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder) / f"file{ending}"
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
