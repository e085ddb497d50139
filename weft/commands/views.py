"""The directory for the files of views."""

from pathlib import Path

from weft.errors import DataError


def folder_for(path: Path) -> None:
    """Create a directory if it does not exist.

    Raises:
        DataError: it cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot be created ({error.strerror or error}); choose another directory", path=path
        ) from error
