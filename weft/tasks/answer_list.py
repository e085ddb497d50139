"""Answers to many inputs as a sequence, which fits into a table: `df.assign(label=model.predict(df.text))`.

An answer is computed when it is read, together with those of its window. Read next: predictor.py.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

import numpy as np

from weft.errors import DataError
from weft.wording import close_name

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Answered(Protocol):
    """What an AnswerList needs of an answer; see predictor.Answer."""

    wrong: str

    def json(self) -> Any:
        """The server's response."""


class AnswerList(Sequence[T], Generic[T]):
    """The answers in the order of the inputs; None where there is none.

    As a NumPy array or a column of a DataFrame it has one cell for each answer, such as the label of a
    decision. It is also an iterator over the answers that `next` has not given yet.

    Example:
        >>> from weft.tasks.predictor import PlainAnswer
        >>> found = AnswerList(iter([PlainAnswer(3), None, PlainAnswer(5)]), lambda one: one.json())
        >>> len(found), found[0], next(found), list(found)
        (3, 3, 3, [3, None, 5])
        >>> found.to_frame().answer.tolist()
        [3.0, nan, 5.0]
    """

    def __init__(
        self,
        found: Iterator[Answered | None],
        value: Callable[[Any], T],
        cell: Callable[[T], Any] | None = None,
        *,
        index: Any = None,
    ) -> None:
        self._rest = found
        self._value = value
        self._cell = cell
        self._index = index
        self._answers: list[Answered | None] = []
        self._found: list[Any] = []
        self._given = 0  # by next
        self._failed: Exception | None = None

    @property
    def wrong(self) -> dict[int, str]:
        """Why the inputs with these numbers, from 0, have no answer; a missing input is not among them."""
        self._reaches(math.inf)
        return {n: one.wrong for n, one in enumerate(self._answers) if one is not None and one.wrong}

    def to_frame(self) -> "pd.DataFrame":
        """A row for each input, with its index in pandas: what the server answers; why some have no answer.

        Example:
            df.join(model.predict(df.text).to_frame())
        """
        import pandas as pd

        wrong = self.wrong
        rows = [{} if one is None or one.wrong else _cells(one.json()) for one in self._answers]
        frame = pd.DataFrame(rows, index=self._index)
        return frame.assign(wrong=[wrong.get(n, "") for n in range(len(rows))]) if wrong else frame

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        self._reaches(math.inf)
        return self._found[place]  # type: ignore[no-any-return]

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
        return self._found[self._given - 1]  # type: ignore[no-any-return]

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
                one = next(self._rest)
                self._found.append(None if one is None or one.wrong else self._value(one))
                self._answers.append(one)
            except StopIteration:
                return False
            except Exception as error:
                self._failed = error
                raise
        return True


def missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, or pandas' NA and NaT."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def rows_of(given: Any, columns: Sequence[str]) -> Any:
    """The inputs in a DataFrame: its only column, or those of these names; anything else as it is."""
    if getattr(given, "ndim", 1) == 2 and given.shape[1] == 1 and not hasattr(given, "columns"):
        return given[:, 0]
    if not (hasattr(given, "columns") and hasattr(given, "to_numpy")):
        return given
    names = list(given.columns)
    if not names and not len(given):
        return []
    if len(names) == 1 and (not columns or not isinstance(names[0], str)):
        columns = names
    wrong = [name for name in columns if names.count(name) != 1]
    if wrong or not columns:
        wanted = f"the columns {', '.join(columns)}, each once" if columns else "one column"
        raise DataError(
            f"expected {wanted}, got a table of {', '.join(map(str, names))[:200]}; {_hint(wrong, names)}"
        )
    if len(columns) == 1:
        return given[columns[0]]
    return [
        dict(zip(columns, cells, strict=True)) for cells in zip(*(given[n] for n in columns), strict=True)
    ]


def _hint(wrong: Sequence[str], names: Sequence[Any]) -> str:
    """What to do about a table with these columns, in which those are missing or twice."""
    if (
        near := close_name(wrong[0], {one for one in names if isinstance(one, str)} - {*wrong})
        if wrong
        else ""
    ):
        return f"rename {near!r} to {wrong[0]!r}"
    return (
        "rename one"
        if any(one in names for one in wrong)
        else "rename them, or give one column, such as df['text']"
    )


def _cells(answer: Any) -> Mapping[str, Any]:
    """An answer's JSON as cells of a row, by column; those of an object inside are KEY.NAME."""
    if not isinstance(answer, dict):
        return {"answer": answer}
    found: dict[str, Any] = {}
    for key, value in answer.items():
        inside = value.items() if isinstance(value, dict) else ()
        found |= {f"{key}.{name}": one for name, one in inside} or {key: value}
    return found
