"""What a student defined, read with one clear sentence where it is missing or wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def expect(right: bool, sentence: str) -> None:
    """Raise the sentence unless it is right."""
    if not right:
        raise AssertionError(sentence)


class Answers:
    """The names that an answer defines.

    Args:
        given: names and values.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given

    def value(self, name: str) -> Any:
        """What stands under a name."""
        expect(self.given.get(name) is not None, f"`{name}` is not defined")
        return self.given[name]

    def guarded(self, what: Callable[[], T], name: str) -> T:
        """A result of the student's own code."""
        try:
            return what()
        except Exception as mistake:
            raise AssertionError(f"{name} raises {type(mistake).__name__}: {mistake}") from mistake

    def call(self, name: str, *arguments: Any) -> Any:
        """The result of a function."""
        function = self.value(name)
        expect(callable(function), f"`{name}` is {function!r}, expected a function")
        found = self.guarded(lambda: function(*arguments), f"`{name}`")
        expect(found is not None, f"`{name}` returns nothing; end it with return")
        return found

    def number(self, name: str, expected: float, *, hint: str, tolerance: float = 1e-9) -> None:
        """Compare a number."""
        _compare(f"`{name}` is", self.value(name), expected, hint, tolerance)

    def word(self, name: str, expected: Sequence[str], *, hint: str) -> None:
        """Compare a word."""
        value = self.value(name)
        expect(isinstance(value, str), f"`{name}` is {_shown(value)}, expected a word in quotes")
        expect(value.strip(" ▁") in expected, f"`{name}` is {value!r}, which is not right: {hint}")

    def close(self, name: str, expected: float, *arguments: Any, hint: str, tolerance: float = 1e-6) -> None:
        """Compare the number that a function returns; the tolerance is relative above 1."""
        shown = ", ".join(_shown(one) for one in arguments)
        found = self.call(name, *arguments)
        _compare(f"`{name}({shown})` gives", found, expected, hint, tolerance * max(1.0, abs(expected)))

    def plain(self, name: str, *arguments: Any) -> float:
        """The number that a function returns."""
        return _number(f"`{name}` gives", self.call(name, *arguments))

    def listed(self, name: str, *arguments: Any) -> list[Any]:
        """The result of a function that returns a list or another sequence."""
        found = self.call(name, *arguments)
        expect(
            isinstance(found, Iterable),
            f"`{name}` gives {_shown(found)}, expected a list or another sequence",
        )
        return list(found)

    def array(self, name: str, shape: Sequence[int], *arguments: Any) -> Tensor:
        """The result of a function that returns numbers of a shape, in its own precision."""
        return self._of_shape(f"`{name}` gives", self.call(name, *arguments), shape)

    def tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        """Numbers of a shape, in float64."""
        return self._of_shape(f"`{name}` has", self.value(name), shape).double()

    def _of_shape(self, what: str, value: Any, shape: Sequence[int]) -> Tensor:
        found = self.guarded(lambda: torch.as_tensor(value).detach(), what.partition(" ")[0])
        same = found.shape == tuple(shape)
        expect(same, f"{what} the shape {list(found.shape)}, expected {list(shape)}, rows first")
        return found

    def part(self, name: str, kind: type[T]) -> T:
        """An object of a class."""
        value = self.value(name)
        expect(isinstance(value, kind), f"`{name}` is {_shown(value)}, expected a {kind.__name__} of weft.nn")
        found: T = value
        return found


class Exercise(NamedTuple):
    """A checkable exercise.

    Attributes:
        asks: the names that an answer defines, as a sentence after "Define".
        check: raises AssertionError with one sentence for a wrong answer.
    """

    asks: str
    check: Callable[[Answers], None]


def _compare(what: str, value: Any, expected: float, hint: str, tolerance: float) -> None:
    found = _number(what, value)
    shown = f"{found:,.0f}" if found.is_integer() else f"{found:.6g}"
    expect(abs(found - expected) <= tolerance, f"{what} {shown}, which is not right: {hint}")


def _number(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor of several numbers
        raise AssertionError(f"{what} {_shown(value)}, expected a number") from None


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 30 else f"a {type(value).__name__}"
