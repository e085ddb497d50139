"""Files that a command writes where the user says: refused before the work begins, whole or not at all.

Read next: evaluate.py, which uses it.
"""

from pathlib import Path

from weft.errors import DataError


def check(*paths: Path | None) -> None:
    """See that files can be written, before hours are spent on what goes into them; None is none.

    Raises:
        DataError: a path is a directory, or the directory it is to stand in is none.
    """
    for path in paths:
        if path is None:
            continue
        try:
            if path.is_dir():
                raise DataError(f"{path}: is a directory; name a file in it")
            if not path.absolute().parent.is_dir():
                raise DataError(
                    f"{path}: there is no directory {path.parent}; make it, or choose another name"
                )
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); choose another place") from error


def write(path: Path, text: str) -> None:
    """Write a text as UTF-8, LF after each line, whole or not at all.

    Raises:
        DataError: it cannot be written; what stood there before still does.
    """
    from weft.train import files

    try:
        files.replace(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror or error}); make room or choose another place"
        ) from error
