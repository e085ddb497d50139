"""Fields of a dataclass are checked against the ranges and choices that they declare."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Probability, check_fields
from weft.tasks.language.decoding import LanguageDecoding
from weft.tasks.seq2seq.decoding import Decoding


@dataclass(frozen=True, kw_only=True)
class Example:
    weight: Probability | Literal["tuned"] = 0.0
    name: Literal["a", "b"] | None = None
    sizes: tuple[AtLeastOne, ...] = ()


@pytest.mark.parametrize("given", [{"weight": "tuned"}, {"weight": 0.5}, {"name": "b"}, {"sizes": (1, 2)}])
def test_what_is_declared_is_accepted(given: dict[str, Any]) -> None:
    check_fields(Example(**given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weight": 2.0}, "weight: expected a number from 0 to 1, got 2.0"),
        ({"name": "c"}, "name: expected one of a, b, got 'c'"),
        ({"sizes": (1, 0)}, "sizes: expected a whole number of at least 1, got 0"),
    ],
)
def test_what_is_not_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_fields(Example(**given))


@pytest.mark.parametrize(
    ("section", "given", "said"),
    [
        (Decoding, {"max_extra": 100_000_000}, "max_extra: expected a whole number from 1 to 100,000"),
        (Decoding, {"temperature": 0.0}, "temperature: expected a number above 0"),
        (Decoding, {"coverage": float("inf")}, "coverage: expected a number from 0"),
        (Decoding, {"beam": 1_001}, "beam: expected a whole number from 1 to 1,000"),
        (LanguageDecoding, {"mixture": 1.5}, "mixture: expected a number from 0 to 1, got 1.5"),
        (LanguageDecoding, {"max_lines": 0}, "max_lines: expected a whole number from 1"),
    ],
)
def test_searches_out_of_range_are_refused(section: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        section(**given)
    assert LanguageDecoding(mixture="tuned").tuned
