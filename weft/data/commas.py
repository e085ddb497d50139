"""A .csv file whose cells are not separated by commas, as spreadsheets of many countries save it."""

from collections.abc import Sequence
from pathlib import Path

from weft.errors import DataError


def check_commas(path: str | Path, first: Sequence[str]) -> None:
    """See that the first line, cut at commas, is not one cell with other separators.

    Raises:
        DataError: it is.

    Example:
        >>> check_commas("x.csv", ["when", "a", "b"])
    """
    other = next((mark for mark in ";\t" if len(first) == 1 and mark in first[0]), None)
    if other is not None:
        shown = "a tab" if other == "\t" else f"{other!r}"
        raise DataError(
            f"{path}:1: the first line has {shown} and no comma; save the file with commas between the cells "
            "and points in the numbers (1.5)"
        )
