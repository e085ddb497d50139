"""A directory that files of views go into."""

from pathlib import Path

from weft.errors import DataError


def folder_for(path: Path) -> None:
    """Make it, if it is not there.

    Raises:
        DataError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot be made ({error.strerror or error}); choose another directory", path=path
        ) from error
