"""The long tail of a parametrised test: `make test-all` runs it, `make test` keeps the leading values."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow(values: Iterable[Any]) -> list[Any]:
    """These values of a parameter, marked slow; a tuple holds one value of each of several parameters."""
    return [_slow(value) for value in values]


def leading(values: Iterable[Any], number: int = 1) -> list[Any]:
    """All values of a parameter; those after the first `number` are slow."""
    every = list(values)
    return [*every[:number], *slow(every[number:])]


def _slow(value: Any) -> Any:
    if hasattr(value, "marks"):  # a pytest.param
        return pytest.param(*value.values, id=value.id, marks=[*value.marks, pytest.mark.slow])
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
