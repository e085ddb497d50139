"""Answers many inputs together; an input that cannot be answered does not affect the others.

Read next: predictor.py, the contract of an answer; ../commands/predict.py, which reports failed inputs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from weft.errors import DataError, ShapeError

T = TypeVar("T")
R = TypeVar("R")

Failure = DataError | ShapeError
"""Errors caused by one input: its content or its length. Errors of settings end the whole command."""


def windows(
    items: Iterable[T], answer: Callable[[Sequence[T]], Iterable[R]], size: int
) -> Iterator[R | Failure]:
    """Like `each`, with `size` items answered together."""
    items = iter(items)
    while part := list(islice(items, size)):
        yield from each(part, answer)


def each(items: Sequence[T], answer: Callable[[Sequence[T]], Iterable[R]]) -> Iterator[R | Failure]:
    """An answer for each item, in order, or the error if it cannot be answered.

    Args:
        items: the inputs.
        answer: answers many at once. If it fails, each half is tried alone, down to single items.

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
