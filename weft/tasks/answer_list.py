"""Answers to many inputs as a sequence, which fits into a table: `df.assign(label=model.classify(df.text))`.

An answer is computed when it is read, together with those of its window. Read next: predictor.py.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

T = TypeVar("T")
In = TypeVar("In")


class AnswerList(Sequence[T], Generic[T]):
    """The answers in the order of the inputs; None for a missing input.

    As a NumPy array or a column of a DataFrame it has one cell for each answer, such as the label of a
    decision. It is also an iterator over the answers that `next` has not given yet.

    Args:
        found: the answers; read as far as they are needed, and kept.
        cell: from an answer to its cell.

    Example:
        >>> found = AnswerList(iter([3, None, 5]), cell=str)
        >>> len(found), found[0], next(found), list(found)
        (3, 3, 3, [3, None, 5])
        >>> np.asarray(found).tolist(), found == [3, None, 5]
        (['3', None, '5'], True)
    """

    def __init__(self, found: Iterator[T], cell: Callable[[T], Any] | None = None) -> None:
        self._rest = found
        self._cell = cell
        self._found: list[T] = []
        self._given = 0  # by next
        self._failed: Exception | None = None

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        self._reaches(math.inf)
        return self._found[place]

    def __len__(self) -> int:
        self._reaches(math.inf)
        return len(self._found)

    def __iter__(self) -> Iterator[T]:
        place = 0
        while self._reaches(place):
            yield self._found[place]
            place += 1

    def __next__(self) -> T:
        if not self._reaches(self._given):
            raise StopIteration
        self._given += 1
        return self._found[self._given - 1]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | tuple | AnswerList) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """[N] the cells; NumPy and pandas call it."""
        cells = np.empty(len(self), dtype=object)
        for place, one in enumerate(self._found):
            cells[place] = one if one is None or self._cell is None else self._cell(one)
        return cells if dtype is None else cells.astype(dtype)

    def __repr__(self) -> str:
        return f"AnswerList({list(self)!r})"

    def _reaches(self, place: float) -> bool:
        """Whether there is an answer at this place; an error is raised again, since list() hides some."""
        while place >= len(self._found):
            if self._failed is not None:
                raise self._failed
            try:
                self._found.append(next(self._rest))
            except StopIteration:
                return False
            except Exception as error:
                self._failed = error
                raise
        return True


def answer_list(
    inputs: Iterable[Any],
    answer: Callable[[Iterator[Any]], Iterator[T]],
    cell: Callable[[T], Any],
    *,
    what: str = "text",
    kinds: tuple[type, ...] = (str,),
) -> AnswerList[T]:
    """The answers to many inputs."""
    if isinstance(inputs, str | bytes):
        raise TypeError(f"expected several {what}s, got one; give a list, or use predict({what})")
    if hasattr(inputs, "columns") and hasattr(inputs, "to_numpy"):
        columns = ", ".join(map(str, inputs.columns[:8]))
        raise TypeError(f"expected one column of {what}s, such as df['{what}'], got a DataFrame of {columns}")
    return AnswerList(_in_order(inputs, answer, what, kinds), cell)


def missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, or pandas' NA and NaT.

    Example:
        >>> missing(None), missing(float("nan")), missing(""), missing(0.0)
        (True, True, False, False)
    """
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _in_order(
    inputs: Iterable[Any],
    answer: Callable[[Iterator[Any]], Iterator[T]],
    what: str,
    kinds: tuple[type, ...],
) -> Iterator[T]:
    absent: deque[bool] = deque()  # of the inputs read so far whose answers are not given yet

    def present() -> Iterator[Any]:
        for number, one in enumerate(inputs):
            absent.append(missing(one))
            if absent[-1]:
                continue
            if not isinstance(one, kinds):
                raise TypeError(f"{what} {number}: expected a {what}, got {type(one).__name__} {one!r:.40}")
            yield one

    for found in answer(present()):
        while absent.popleft():
            yield None  # type: ignore[misc]
        yield found
    yield from (None for _ in absent)  # type: ignore[misc]
