"""What a student defined, read with one clear sentence where it is missing or wrong."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def expect(right: bool, sentence: str) -> None:
    """Raise the sentence unless it is right."""
    if not right:
        raise AssertionError(sentence)


class Answers:
    """The names that an answer defines, with their values."""

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

    def number(
        self,
        name: str,
        expected: float,
        *,
        hint: str,
        digits: int | None = None,
        error: float = 0.0,
        share: bool = False,
        slips: Mapping[int, str] | None = None,
    ) -> None:
        """Compare a number.

        `hint` says what to look at if it is wrong, `slips` the same for usual wrong numbers. `digits` are the
        significant digits that an answer needs, None for an exact number; `error` is how far an estimate by
        sampling may be off; with `share`, 24 and "24 %" are right where 0.24 is.
        """
        found = _number(f"`{name}`", self.value(name))
        if share and 1 < found <= 100:
            found /= 100
        if _same(found, expected, digits) or abs(found - expected) <= error:
            return
        why = next((why for slip, why in (slips or {}).items() if math.isclose(found, slip)), "")
        if not why and any(_same(found, _rounded(expected, few), None) for few in range(1, digits or 16)):
            raise AssertionError(f"`{name}` is {_told(found)}; give more digits")
        why = why or hint
        raise AssertionError(f"`{name}` is {_told(found)}, which is not right: {why}")

    def word(self, name: str, expected: Sequence[str], *, hint: str) -> None:
        """Compare a word."""
        value = self.value(name)
        expect(isinstance(value, str), f"`{name}` is {_shown(value)}, expected a word in quotes")
        plain = value.strip(" ▁_.").casefold()
        expect(plain in expected, f"`{name}` is {value!r}, which is not right: {hint}")

    def truth(self, what: str, value: Any) -> bool:
        """A yes or no, also in words."""
        if not isinstance(value, str):
            return bool(value)
        plain = value.strip().casefold()
        expect(
            plain in ("yes", "no", "true", "false"), f"{what}: expected True or False, got {_shown(value)}"
        )
        return plain in ("yes", "true")

    def several(self, name: str) -> list[Any]:
        """A set, given as a set, a list, a tuple or words; one value stands for itself."""
        value = self.value(name)
        if isinstance(value, str):
            return re.findall(r"[\w.]+", value)
        return list(value) if isinstance(value, Iterable) else [value]

    def plain_number(self, name: str, value: Any) -> float:
        """A number of a list."""
        return _number(f"`{name}`", value)

    def close(
        self,
        name: str,
        expected: float,
        *arguments: Any,
        hint: str,
        tolerance: float = 1e-5,
        share: bool = False,
    ) -> None:
        """Compare the number that a function returns; the tolerance is relative above 1."""
        what = f"`{name}({', '.join(map(_shown, arguments))})`"
        found = _number(what, self.call(name, *arguments))
        right = [expected, 100 * expected] if share else [expected]
        expect(
            any(abs(found - one) <= tolerance * max(1.0, abs(one)) for one in right),
            f"{what} gives {_told(found)}, which is not right: {hint}",
        )

    def plain(self, name: str, *arguments: Any) -> float:
        """The number that a function returns."""
        return _number(f"`{name}`", self.call(name, *arguments))

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
        return self._of_shape(name, self.call(name, *arguments), shape)

    def tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        """Numbers of a shape, in float64."""
        return self._of_shape(name, self.value(name), shape).double()

    def _of_shape(self, name: str, value: Any, shape: Sequence[int]) -> Tensor:
        found = self.guarded(lambda: torch.as_tensor(value).detach(), f"`{name}`")
        same = found.shape == tuple(shape)
        expect(same, f"`{name}`: expected the shape {list(shape)}, rows first, got {list(found.shape)}")
        return found

    def part(self, name: str, kind: type[T]) -> T:
        """An object of a class."""
        value = self.value(name)
        expect(isinstance(value, kind), f"`{name}` is {_shown(value)}, expected a {kind.__name__} of weft.nn")
        found: T = value
        return found


class Exercise(NamedTuple):
    """A checkable exercise."""

    asks: str  # the names that an answer defines, as a sentence after "Define"
    check: Callable[[Answers], None]  # raises AssertionError with one sentence for a wrong answer


def _same(found: float, expected: float, digits: int | None) -> bool:
    """Whether a number is right to the digits that it shows, `digits` at least."""
    if digits is None:
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)
    near = abs(found - expected) <= abs(expected) * 10.0 ** -(digits + 1)  # rounded on the way
    return near or any(math.isclose(found, _rounded(expected, n), rel_tol=1e-12) for n in range(digits, 16))


def _rounded(number: float, digits: int) -> float:
    return float(f"{number:.{digits - 1}e}")


def _number(what: str, value: Any) -> float:
    """A number, also as text: "240 800", "240,800", "24 %", "0,24", "1/2"."""
    try:
        if not isinstance(value, str):
            return float(value)
        text = re.sub(r"[\s_≈~%]", "", value).replace("−", "-")
        text = text.replace(",", "" if re.search(r"[1-9]\d{0,2}(,\d{3})+(\.|$)", text) else ".")
        return float(Fraction(text)) / (100 if "%" in value else 1)
    except (
        TypeError,
        ValueError,
        RuntimeError,
        ZeroDivisionError,
    ):  # RuntimeError: a tensor of several numbers
        raise AssertionError(f"{what}: expected a number, got {_shown(value)}") from None


def _told(number: float) -> str:
    return f"{number:,.0f}" if number.is_integer() else f"{number:.6g}"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor{list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 30 else type(value).__name__
