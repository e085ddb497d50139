"""Inputs that are answered together, and one that cannot be answered kept apart from the others.

Read next: task.py, what an answer is; ../commands/predict.py, which tells of those that have none.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from weft.errors import DataError, ShapeError

T = TypeVar("T")
R = TypeVar("R")

Failure = DataError | ShapeError
"""Why an input has no answer: what it says, or its length. A setting that does not fit ends everything."""


def each(items: Sequence[T], answer: Callable[[Sequence[T]], Iterable[R]]) -> Iterator[R | Failure]:
    """An answer for each item, in order; in the place of one that cannot be answered, why.

    Args:
        items: what is asked.
        answer: answers many at once. If it fails, each half is tried by itself, down to a single item.

    Example:
        >>> def halves(numbers):
        ...     if 7 in numbers:
        ...         raise DataError("7 is odd")
        ...     return [number // 2 for number in numbers]
        >>> list(each([2, 7, 4], halves))
        [1, DataError('7 is odd'), 2]
    """
    try:
        found = list(answer(items)) if items else []
    except (DataError, ShapeError) as error:
        if len(items) == 1:
            yield error
            return
        middle = len(items) // 2
        yield from each(items[:middle], answer)
        yield from each(items[middle:], answer)
        return
    yield from found


def place(source: Path | BinaryIO, number: int) -> str:
    """Where an input stands, such as in.txt:3."""
    return f"{source if isinstance(source, Path) else 'standard input'}:{number}"
